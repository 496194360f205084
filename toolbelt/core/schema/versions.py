"""A version of a schema, read part by part: references are followed, and alternatives become lists of parts.

Schemas come from servers, so reading and comparing them share one limit on work (:class:`Work`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from toolbelt.core.schema import constraints, forms

MAX_ALTERNATIVES = 16
MAX_DEPTH = 64
# Stands for what cannot be followed: a reference that is not a path in the document, or too many alternatives.
UNREADABLE = "unreadable"
# A part that no value satisfies.
NOTHING: Mapping[str, Any] = {"not": {}}

# Keywords that say nothing about the value.
_PROSE = frozenset({"$comment", "default", "deprecated", "description", "examples", "title"})
_NAMING = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})


class Work:
    """The steps that are left."""

    def __init__(self, steps: int) -> None:
        self._left = steps

    @property
    def is_left(self) -> bool:
        """Return whether work is left to do."""
        return self._left > 0

    def take(self, steps: int = 1) -> bool:
        """Count work; return whether any is left."""
        self._left -= steps
        return self.is_left

    def end(self) -> None:
        """Leave none."""
        self._left = 0


class Version:
    """A schema, with what has been read of it."""

    def __init__(self, document: Mapping[str, Any], work: Work) -> None:
        self.document = document
        self._work = work
        self._whole_text: str | None = None
        # The identities of what references lead to.
        self.reached: set[int] = set()

    def target(self, schema: Any) -> Any:
        """Return the target of a schema that is only a reference; else the schema."""
        for _ in range(MAX_DEPTH):
            if not isinstance(schema, Mapping) or not isinstance(schema.get("$ref"), str):
                break
            if not schema.keys() <= {"$ref"} | _PROSE:
                break
            target = _find(self.document, schema["$ref"])
            if target is None:
                break
            self.reached.add(id(target))
            schema = target
        return schema

    def alternatives(
        self, schemas: constraints.Schemas, followed: frozenset[str] = frozenset()
    ) -> list[list[Mapping[str, Any]]]:
        """Return the ways to satisfy all of the schemas, each as the parts that then apply. ``followed`` are the
        references that led here.
        """
        if len(followed) > MAX_DEPTH:
            self._work.end()
        parts, groups, followed = self._expanded(schemas, followed)
        ways = [parts]
        for group in groups:
            branches: list[list[Mapping[str, Any]]] = []
            for branch in group[: MAX_ALTERNATIVES + 1]:
                if not self._work.take():
                    break
                branches += self.alternatives((branch,), followed)
            if len(ways) * len(branches) > MAX_ALTERNATIVES:
                unreadable = {UNREADABLE: text(group, self._work)}
                ways = [[*way, unreadable] for way in ways]
            else:
                ways = [[*way, *branch] for way in ways for branch in branches]
                self._work.take(sum(map(len, ways)) // 10)
        return ways

    def _expanded(
        self, schemas: constraints.Schemas, followed: frozenset[str]
    ) -> tuple[list[Mapping[str, Any]], list[list[Any]], frozenset[str]]:
        """Return the parts that always apply, the lists of which one each applies, and the references followed."""
        waiting, parts, groups = list(schemas), list[Mapping[str, Any]](), list[list[Any]]()
        while waiting and self._work.take():
            value = waiting.pop(0)
            if value is False:
                parts.append(NOTHING)
            if not isinstance(value, Mapping):
                continue
            parts.append(value)
            if "$id" in value and value is not self.document:
                # Its references are relative to itself.
                parts.append({UNREADABLE: self._text()})
            for keyword in ("$ref", "$dynamicRef"):
                reference = value.get(keyword)
                if not isinstance(reference, str) or reference in followed:
                    continue
                followed |= {reference}
                target = _find(self.document, reference)
                if target is None:
                    parts.append({UNREADABLE: reference + self._text()})
                else:
                    self.reached.add(id(target))
                    waiting.append(target)
            if isinstance(value.get("allOf"), list):
                waiting += value["allOf"]
            groups += [
                value[word]
                for word in ("anyOf", "oneOf")
                if value.get(word) and isinstance(value[word], list)
            ]
        return parts, groups, followed

    def _text(self) -> str:
        """Return the text of the whole version: it differs if anything changed that cannot be followed."""
        if self._whole_text is None:
            self._whole_text = text(self.document, self._work)
        return self._whole_text


def text(value: Any, work: Work) -> str:
    """Return a text that is equal for what constrains values equally."""
    if not work.take():
        return ""
    canonical = forms.canonical(_without_prose(value))
    work.take(len(canonical) // 50)
    return canonical


def _find(document: Any, reference: str) -> Any:
    """Return the target of a reference within the document; None if there is nothing that can be compared."""
    if not reference.startswith("#") or (len(reference) > 1 and reference[1] != "/"):
        return None
    for name in unquote(reference[1:]).split("/")[1:]:
        name = name.replace("~1", "/").replace("~0", "~")
        if isinstance(document, Mapping):
            document = document.get(name)
        elif isinstance(document, list) and name.isdecimal() and len(name) < 6 and int(name) < len(document):
            document = document[int(name)]
        else:
            return None
    return document if isinstance(document, Mapping | bool) else None


def _without_prose(value: Any, *, is_named: bool = False) -> Any:
    match value:
        case Mapping():
            return {
                key: _without_prose(inner, is_named=key in _NAMING and not is_named)
                for key, inner in value.items()
                if is_named or key not in _PROSE
            }
        case list():
            return [_without_prose(inner) for inner in value]
    return value
