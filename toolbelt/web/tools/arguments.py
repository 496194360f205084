"""The arguments of a tool in words.

A schema comes from the server that offers the tool, so it may contain anything: unknown parts are ignored, references
are followed inside the schema only, and depth and length are limited.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from toolbelt.core import schema
from toolbelt.web.kit import pieces, texts, words

MAX_DEPTH = 4
MAX_ABOUT_LENGTH = 400
MAX_LIMIT_LENGTH = 160
MAX_COUNT = 80
# The most alternatives of a choice that are named, and the depth of choices within choices.
MAX_CHOICES = 20
MAX_CHOICE_DEPTH = 2
_LIMITS = {
    "format": "format",
    "pattern": "pattern",
    "minimum": "at least",
    "maximum": "at most",
    "exclusiveMinimum": "more than",
    "exclusiveMaximum": "less than",
    "minLength": "minimum length",
    "maxLength": "maximum length",
    "minItems": "minimum items",
    "maxItems": "maximum items",
}


class Argument(pieces.View):
    """An argument, or a nested one (``depth``), with its kind and limits in words."""

    def __init__(
        self, root: Mapping[str, Any], argument: Mapping[str, Any], path: str, depth: int, required: bool
    ) -> None:
        self.path, self.depth, self.required = path, depth, required
        self.kind = _kind(root, argument)
        self.about = _text(argument.get("description") or argument.get("title"))
        self.limits = ", ".join(_limits(argument))


def listed(text: str) -> Iterator[Argument]:
    """Yield the arguments that a schema describes, each followed by its nested ones."""
    root = schema.mapping(text, schema.EMPTY)
    yield from _properties(root, root, "", 0)


def _properties(
    root: Mapping[str, Any], part: Mapping[str, Any], prefix: str, depth: int
) -> Iterator[Argument]:
    required = part.get("required")
    needed = {name for name in required if isinstance(name, str)} if isinstance(required, list) else set()
    properties = part.get("properties")
    for name, raw in properties.items() if isinstance(properties, Mapping) else ():
        argument = _resolve(root, raw)
        path = f"{prefix}{texts.visible(str(name))}"
        yield Argument(root, argument, path, depth, name in needed)
        if depth + 1 >= MAX_DEPTH:
            continue
        items = _resolve(root, argument.get("items"))
        if items.get("properties"):
            yield from _properties(root, items, f"{path}[].", depth + 1)
        yield from _properties(root, argument, f"{path}.", depth + 1)


def _resolve(root: Mapping[str, Any], part: Any) -> Mapping[str, Any]:
    """Return the part with its reference into the schema resolved; empty if it is not a mapping."""
    for _ in range(MAX_DEPTH):
        reference = part.get("$ref") if isinstance(part, Mapping) else None
        if not isinstance(reference, str):
            break
        target: Any = root
        for step in reference.removeprefix("#").strip("/").split("/"):
            target = (
                target.get(step.replace("~1", "/").replace("~0", "~"))
                if isinstance(target, Mapping)
                else None
            )
        rest = {key: value for key, value in part.items() if key != "$ref"}
        part = {**target, **rest} if isinstance(target, Mapping) else rest
    return part if isinstance(part, Mapping) else {}


def _kind(root: Mapping[str, Any], part: Mapping[str, Any], depth: int = 0) -> str:
    if "const" in part:
        return _value(part["const"])
    values = part.get("enum")
    if isinstance(values, list) and values:
        return words.cut(" | ".join(map(_value, values)), MAX_LIMIT_LENGTH)
    for word in ("anyOf", "oneOf"):
        choices = part.get(word)
        # A choice may contain choices, and refer to itself.
        if isinstance(choices, list) and choices and depth < MAX_CHOICE_DEPTH:
            kinds = dict.fromkeys(
                _kind(root, _resolve(root, choice), depth + 1) for choice in choices[:MAX_CHOICES]
            )
            return words.cut(" or ".join(kinds), MAX_LIMIT_LENGTH)
    stated = part.get("type")
    if isinstance(stated, list):
        return words.cut(" or ".join(map(_text, stated)), MAX_LIMIT_LENGTH)
    if stated == "array":
        items = _resolve(root, part.get("items"))
        return f"list of {_kind(root, items, depth + 1)}" if items and not items.get("items") else "list"
    return _text(stated) or "anything"


def _limits(part: Mapping[str, Any]) -> Iterator[str]:
    for name, word in _LIMITS.items():
        if name in part:
            yield f"{word} {_value(part[name])}"
    if "default" in part:
        yield f"default {_value(part['default'])}"


def _value(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return texts.visible(words.cut(text, MAX_LIMIT_LENGTH))


def _text(value: Any) -> str:
    return texts.visible(words.cut(value, MAX_ABOUT_LENGTH)) if isinstance(value, str) else ""
