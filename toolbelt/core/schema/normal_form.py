"""The normal form of a schema: equal for schemas that accept the same arguments and tell a model the same.

Frameworks and versions of a library write the schema of one function in different forms. Only differences that neither
limit arguments nor are text are removed, so a normal form may stand for its schema where changes are reviewed: a title
is ignored only if it repeats a name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from toolbelt.core import schema_drafts

# Keywords whose value maps names to schemas, and those whose value is a schema or a list of schemas.
_NAMING = ("$defs", "dependentSchemas", "patternProperties", "properties")
_NESTING = frozenset(
    (
        *("additionalProperties", "allOf", "anyOf", "contains", "else", "if", "items", "not", "oneOf"),
        *("prefixItems", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
    )
)
# What libraries append to a function's name for the title of its arguments.
_ENDINGS = ("", "args", "arguments", "input", "inputs", "parameters", "params", "schema")
# Only these: other characters may be invisible, and yet be read by a model.
_BETWEEN_WORDS = re.compile(r"[ _-]+")

# What ``$schema`` says at the top without telling a model anything. Any other value is text.
_DRAFT = re.compile(r"https?://json-schema\.org/(draft-0[3-7]/schema|draft/(2019-09|2020-12)/schema)#?")
# A schema with this keyword reads ``additionalProperties: true`` as a permission.
_UNEVALUATED = "unevaluatedProperties"

Schema = Mapping[str, Any]


def of(schema: Schema, names: tuple[str, ...] = (), description: str = "", *, is_open: bool = False) -> Any:
    """Return the normal form of a tool's input schema.

    ``names`` are the tool's names, and ``description`` is its description: a title or a description at the top that
    repeats them says nothing. With ``is_open``, an object that lists its properties is equal to one that also forbids
    others: for functions of a program, of which libraries write either.
    """
    titles = frozenset(_letters(name) + ending for name in names for ending in _ENDINGS)
    current = schema_drafts.current(schema)
    writer = _Writer(
        is_open,
        has_old_definitions="definitions" in current and "$defs" not in current,
        is_open_by_default=_UNEVALUATED not in json.dumps(current, default=str),
    )
    normal = writer.schema(current, lambda title: _letters(title) in titles)
    if not isinstance(normal, dict):
        return normal
    if isinstance(draft := normal.get("$schema"), str) and _DRAFT.fullmatch(draft):
        del normal["$schema"]
    if normal.get("description") == description.strip():
        del normal["description"]
    normal.setdefault("type", "object")
    if is_open and normal.get("additionalProperties") is False:
        del normal["additionalProperties"]
    return normal


class _Writer:
    def __init__(self, is_open: bool, *, has_old_definitions: bool, is_open_by_default: bool) -> None:
        self._is_open, self._has_old_definitions = is_open, has_old_definitions
        self._is_open_by_default = is_open_by_default

    def schema(self, schema: Any, repeats: Callable[[str], bool]) -> Any:
        """Return the normal form of one schema; ``repeats`` says whether a title only repeats a name."""
        if not isinstance(schema, Mapping):
            return schema
        normal: dict[str, Any] = {}
        for keyword, value in schema.items():
            if keyword == "definitions" and self._has_old_definitions and "$defs" not in schema:
                keyword = "$defs"
            if keyword in _NAMING and isinstance(value, Mapping):
                normal[keyword] = {name: self.schema(inner, _named(name)) for name, inner in value.items()}
            elif keyword in _NESTING and isinstance(value, list):
                normal[keyword] = [self.schema(inner, _nothing) for inner in value]
            elif keyword in _NESTING:
                normal[keyword] = self.schema(value, _nothing)
            else:
                normal[keyword] = value
        self._without_noise(normal, repeats)
        return _with_types(normal)

    def _without_noise(self, normal: dict[str, Any], repeats: Callable[[str], bool]) -> None:
        if isinstance(title := normal.get("title"), str) and repeats(title):
            del normal["title"]
        if isinstance(description := normal.get("description"), str):
            normal["description"] = description.strip()
            if not normal["description"]:
                del normal["description"]
        if normal.get("default", ...) is None:
            del normal["default"]
        if isinstance(required := normal.get("required"), list):
            normal["required"] = sorted({*map(str, required)})
            if not required:
                del normal["required"]
        others = normal.get("additionalProperties", ...)
        says_default = self._is_open_by_default and (others is True or others == {})
        if says_default or (self._is_open and others is False and "properties" in normal):
            del normal["additionalProperties"]
        for keyword in _NAMING:
            if normal.get(keyword, ...) == {}:
                del normal[keyword]
        reference = normal.get("$ref")
        if self._has_old_definitions and isinstance(reference, str):
            normal["$ref"] = reference.replace("#/definitions/", "#/$defs/", 1)


def _with_types(normal: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with its types and choices in one spelling."""
    if "const" in normal and "enum" not in normal:
        normal["enum"] = [normal.pop("const")]
    if isinstance(choices := normal.get("enum"), list):
        normal["enum"] = sorted(choices, key=_text)
    if (types := _types_of_choice(normal.get("anyOf"))) and "type" not in normal:
        del normal["anyOf"]
        normal["type"] = types
    kind = normal.get("type")
    if isinstance(kind, list) and all(isinstance(name, str) for name in kind):
        names = sorted({*kind})
        normal["type"] = names[0] if len(names) == 1 else names
    return normal


def _types_of_choice(choice: Any) -> list[str]:
    """Return the types of an ``anyOf`` that names nothing else, as libraries write optional arguments."""
    if not isinstance(choice, list) or not all(
        isinstance(part, Mapping) and part.keys() == {"type"} and isinstance(part["type"], str)
        for part in choice
    ):
        return []
    return [part["type"] for part in choice]


def _named(name: str) -> Callable[[str], bool]:
    return lambda title: _letters(title) == _letters(name)


def _nothing(title: str) -> bool:
    return False


def _letters(text: str) -> str:
    return _BETWEEN_WORDS.sub("", text).casefold()


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
