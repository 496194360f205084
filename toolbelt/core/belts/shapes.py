"""The shapes that entries are made of: text, booleans, lists, mappings, JSON.

A shape has two methods. ``problems`` yields what does not fit; ``read`` returns what does, so that a valid value is
read completely and an invalid one as far as possible. None always means "not given". Lists keep their positions when
they are read, with None for an item that does not fit, so that a rule can report the index.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from toolbelt.core import grants
from toolbelt.core.belts import findings

# Deep enough for real schemas (the deepest of 484 has 21 levels), shallow enough to walk safely.
MAX_DEPTH = 64
# The largest number that every database stores in a plain integer column.
MAX_INTEGER = 2**31 - 1
# In bits. Python refuses to write numbers of more than 4300 digits.
MAX_NUMBER_LENGTH = 1024

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


class Shape(Protocol):
    """One kind of value: what is wrong with a value, and what can be read of it."""

    def problems(self, value: Any, at: findings.Path) -> Iterator[findings.Finding]: ...

    def read(self, value: Any) -> Any: ...


@dataclass(frozen=True, slots=True)
class Text:
    """Text that can be stored and sent: without NUL and without lone surrogates."""

    def problems(self, value: Any, at: findings.Path) -> Iterator[findings.Finding]:
        if not isinstance(value, str):
            yield _unfit(at, "text", value)
        elif not _is_storable(value):
            yield findings.Finding(at, f"{_name(at)} contains a character that cannot be stored: remove it.")

    def read(self, value: Any) -> str | None:
        return value if isinstance(value, str) and _is_storable(value) else None


@dataclass(frozen=True, slots=True)
class YesNo:
    """True or false, and nothing that only looks like it."""

    def problems(self, value: Any, at: findings.Path) -> Iterator[findings.Finding]:
        if not isinstance(value, bool):
            yield _unfit(at, "true or false", value)

    def read(self, value: Any) -> bool | None:
        return value if isinstance(value, bool) else None


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number from 0; true and false are not numbers."""

    def problems(self, value: Any, at: findings.Path) -> Iterator[findings.Finding]:
        if self.read(value) is None:
            yield _unfit(at, f"a whole number from 0 to {MAX_INTEGER}", value)

    def read(self, value: Any) -> int | None:
        is_number = isinstance(value, int) and not isinstance(value, bool)
        return value if is_number and 0 <= value <= MAX_INTEGER else None


@dataclass(frozen=True, slots=True)
class Moment:
    """A time in ISO 8601 with a time zone; read as UTC, to the second."""

    def problems(self, value: Any, at: findings.Path) -> Iterator[findings.Finding]:
        if self.read(value) is None:
            yield _unfit(at, "a time with its zone, such as '2026-11-22T14:05:00Z'", value)

    def read(self, value: Any) -> str | None:
        moment = grants.parse_time(value)
        return None if moment is None else grants.format_time(moment)


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of a few words; empty text means "not given"."""

    words: tuple[str, ...]

    def problems(self, value: Any, at: findings.Path) -> Iterator[findings.Finding]:
        if value != "" and self.read(value) is None:
            finding = _unfit(at, f"{', '.join(self.words[:-1])} or {self.words[-1]}", value)
            yield finding._replace(name=value, among=self.words) if isinstance(value, str) else finding

    def read(self, value: Any) -> str | None:
        return value if isinstance(value, str) and value in self.words else None


@dataclass(frozen=True, slots=True)
class Json:
    """A JSON object. It is read as a copy, so that later changes by its writer do not affect the value."""

    def problems(self, value: Any, at: findings.Path) -> Iterator[findings.Finding]:
        if not isinstance(value, Mapping):
            yield _unfit(at, "a mapping", value)
            return
        try:
            _copied(value, 0)
        except ValueError as error:
            yield findings.Finding(at, f"{_name(at)} cannot be written as JSON: {error}.")

    def read(self, value: Any) -> dict[str, Any] | None:
        try:
            return dict(_copied(value, 0)) if isinstance(value, Mapping) else None
        except ValueError:
            return None


@dataclass(frozen=True, slots=True)
class Each:
    """A list whose items have one shape."""

    item: Shape

    def problems(self, value: Any, at: findings.Path) -> Iterator[findings.Finding]:
        if not isinstance(value, (list, tuple)):
            yield _unfit(at, "a list", value)
            return
        for position, item in enumerate(value):
            yield from self.item.problems(item, (*at, position))

    def read(self, value: Any) -> list[Any] | None:
        return [self.item.read(item) for item in value] if isinstance(value, (list, tuple)) else None


@dataclass(frozen=True, slots=True)
class Pairs:
    """A mapping with any keys and values of one shape; None means "not given"."""

    value: Shape

    def problems(self, value: Any, at: findings.Path) -> Iterator[findings.Finding]:
        if not isinstance(value, Mapping):
            yield _unfit(at, "a mapping", value)
            return
        for position, (key, item) in enumerate(value.items()):
            path = (*at, findings.part(key, position))
            if isinstance(path[-1], int):
                yield _unfit(path, "a key that is a name", key)
            if item is not None:
                yield from self.value.problems(item, path)

    def read(self, value: Any) -> dict[str, Any] | None:
        """Return the pairs whose key is a name; the value is None if it is missing or does not fit."""
        if not isinstance(value, Mapping):
            return None
        return {
            key: self.value.read(item)
            for key, item in value.items()
            if isinstance(findings.part(key, 0), str)
        }


@dataclass(frozen=True, slots=True)
class Fields:
    """A mapping with fixed fields, in the order in which they are written; ``required`` ones must be given."""

    fields: Mapping[str, Shape]
    required: tuple[str, ...] = ()

    def problems(self, value: Any, at: findings.Path) -> Iterator[findings.Finding]:
        if not isinstance(value, Mapping):
            yield _unfit(at, "a mapping", value)
            return
        for position, (key, item) in enumerate(value.items()):
            path = (*at, findings.part(key, position))
            shape = self.fields.get(key) if isinstance(key, str) else None
            if shape is None:
                message, fields = f"There is no field {_shown(key)} here.", tuple(self.fields)
                yield findings.Finding(path, message, str(key), fields, f"There are {', '.join(fields)}.")
            elif item is not None:
                yield from shape.problems(item, path)
        for key in self.required:
            item = value.get(key)
            if item is None or (isinstance(item, str) and not item.strip()):
                yield findings.Finding((*at, key), f"{key!r} is required: it cannot be missing or blank.")

    def read(self, value: Any) -> dict[str, Any] | None:
        """Return the fields that are given and fit."""
        if not isinstance(value, Mapping):
            return None
        fields = {
            key: shape.read(value.get(key))
            for key, shape in self.fields.items()
            if value.get(key) is not None
        }
        return {key: item for key, item in fields.items() if item is not None}


@dataclass(frozen=True, slots=True)
class Use:
    """A tool's key, or ``{tool, options}``; read as the latter."""

    def problems(self, value: Any, at: findings.Path) -> Iterator[findings.Finding]:
        if isinstance(value, (str, Mapping)):
            yield from (Text() if isinstance(value, str) else _USE).problems(value, at)
        else:
            yield _unfit(at, "a tool's key, or a mapping of tool and options", value)

    def read(self, value: Any) -> dict[str, Any] | None:
        use = _USE.read({"tool": value} if isinstance(value, str) else value)
        return use if use and "tool" in use else None


_USE = Fields({"tool": Text(), "options": Json()}, required=("tool",))


def _is_storable(text: str) -> bool:
    return not _UNSTORABLE.search(text)


def _copied(value: Any, depth: int) -> Any:
    """Return a copy of a JSON value; raise ValueError if it is not JSON."""
    if depth > MAX_DEPTH:
        raise ValueError(f"it is nested deeper than {MAX_DEPTH} levels")
    match value:
        case Mapping():
            if not all(isinstance(key, str) and _is_storable(key) for key in value):
                raise ValueError("a key in it is not text that can be stored")
            return {key: _copied(item, depth + 1) for key, item in value.items()}
        case list() | tuple():
            return [_copied(item, depth + 1) for item in value]
        case str() if not _is_storable(value):
            raise ValueError("a text in it cannot be stored")
        case float() if not math.isfinite(value):
            raise ValueError(f"{value} is not a number in JSON")
        case int() if value.bit_length() > MAX_NUMBER_LENGTH:
            raise ValueError("a number in it is too large to be written")
        case None | str() | bool() | int() | float():
            return value
    raise ValueError(f"{_shown(value)} has no form in JSON")


def _unfit(at: findings.Path, expected: str, value: object) -> findings.Finding:
    return findings.Finding(at, f"{_name(at)} must be {expected}, not {_shown(value)}.")


def _name(at: findings.Path) -> str:
    """Return the words for a path in a sentence: its last key, followed by its indexes."""
    last = next((position for position in range(len(at) - 1, -1, -1) if isinstance(at[position], str)), None)
    if last is None:
        return "This"
    return repr(f"{at[last]}" + "".join(f"[{index}]" for index in at[last + 1 :]))


def _shown(value: object) -> str:
    match value:
        case None | True | False:
            return {None: "null", True: "true", False: "false"}[value]
        case Mapping():
            return "a mapping"
        case list() | tuple():
            return "a list"
        case str() if len(value) > 60:
            return repr(value[:60] + "…")
        case str() | float():
            return repr(value)
        case int():
            return str(value) if abs(value) < 10**20 else "a very large number"
    return f"a {type(value).__name__}"
