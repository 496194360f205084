"""Generated arguments that measure the cost of checking against a schema.

They need not fit: arguments that fit no branch make a check try every branch. The first document holds every part of
the schema once. The others nest as deep as the schema allows, each along another name: a schema that applies twice to a
location at every level doubles the work with each level.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

# How deep arguments are nested, and along how many names.
MAX_DEPTH = 40
MAX_NAMES = 32
# How many schemas are visited to generate them; none of 484 real tools takes more than 200.
MAX_VISITS = 50_000

# A part of a value: a property's name, or the first position in a list.
Location = str | int
_ITEM = 0
# A name for properties that a schema describes by a pattern, or not at all.
_OTHER = "other"


class TooManyError(Exception):
    """The schema contains too many schemas to visit."""


class Probe:
    """Generates arguments for one schema; ``target`` returns the schema that a reference leads to."""

    def __init__(self, schema: Mapping[str, Any], target: Callable[[str], Any]) -> None:
        self._schema, self._target = schema, target
        self._visits = 0

    def arguments(self) -> Iterator[Any]:
        """Yield arguments to check against the schema; raise TooManyError if it is too large."""
        names: dict[Location, None] = {}
        yield self._everything([self._schema], set(), names)
        for name in [*names][:MAX_NAMES]:
            yield self._chain(name)

    def _everything(self, schemas: list[Any], visited: set[int], names: dict[Location, None]) -> Any:
        """Return a value with all parts that unseen schemas describe, and add their locations to ``names``."""
        parts = self._parts([schema for schema in schemas if id(schema) not in visited])
        visited.update(map(id, schemas))
        names.update(dict.fromkeys(parts))
        values = {location: self._everything(inner, visited, names) for location, inner in parts.items()}
        if [*values] == [_ITEM]:
            return [values[_ITEM]]
        return {location: value for location, value in values.items() if location != _ITEM} or None

    def _chain(self, preferred: Location) -> Any:
        """Return a value that nests at the preferred location, or else where most schemas apply."""
        locations: list[Location] = []
        schemas: list[Any] = [self._schema]
        while len(locations) < MAX_DEPTH and (parts := self._parts(schemas)):
            largest = max(parts, key=lambda location: len(parts[location]))
            locations.append(preferred if preferred in parts else largest)
            schemas = parts[locations[-1]]
        value: Any = None
        for location in reversed(locations):
            value = [value] if location == _ITEM else {location: value}
        return value

    def _parts(self, schemas: list[Any]) -> Mapping[Location, list[Any]]:
        """Return the schemas that apply to each part of a value to which all of these apply."""
        parts: dict[Location, list[Any]] = {}
        for schema in self._in_place(schemas):
            for name, inner in _mapping(schema.get("properties")).items():
                parts.setdefault(name, []).append(inner)
            others = [schema.get("additionalProperties"), schema.get("unevaluatedProperties")]
            others += _mapping(schema.get("patternProperties")).values()
            items = [schema.get(word) for word in ("items", "contains", "unevaluatedItems")]
            items += _list(schema.get("prefixItems"))[:1]
            for location, inner in ((_OTHER, others), (_ITEM, items)):
                if nested := [part for part in inner if isinstance(part, Mapping)]:
                    parts.setdefault(location, []).extend(nested)
        return parts

    def _in_place(self, schemas: list[Any]) -> Iterator[Mapping[str, Any]]:
        """Yield the schemas and those that they apply to the same value, each once."""
        waiting, visited = list(schemas), set()
        while waiting:
            schema = waiting.pop()
            if not isinstance(schema, Mapping) or id(schema) in visited:
                continue
            self._visits += 1
            if self._visits > MAX_VISITS:
                raise TooManyError
            visited.add(id(schema))
            yield schema
            for word in ("allOf", "anyOf", "oneOf"):
                waiting += _list(schema.get(word))
            waiting += [schema.get(word) for word in ("not", "if", "then", "else")]
            waiting += _mapping(schema.get("dependentSchemas")).values()
            references = [schema.get(word) for word in ("$ref", "$dynamicRef")]
            waiting += [self._target(reference) for reference in references if isinstance(reference, str)]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
