"""How is the schema of a tool's arguments read out, for people?

A schema comes from whoever offers the tool, so it may be anything: what is not understood is passed over, references
are followed inside the schema alone, and neither depth nor length is without end.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from toolbelt.core import schema
from toolbelt.web import words
from toolbelt.web.pages import texts
from toolbelt.web.presenters import tools

DEEPEST = 4
LONGEST_ABOUT = 400
LONGEST_LIMIT = 160
MOST = 80
# How many schemas of a choice are named, and how many choices within choices are looked into.
MOST_CHOICES = 20
DEEPEST_CHOICE = 2
_LIMITS = {
    "format": "format",
    "pattern": "pattern",
    "minimum": "at least",
    "maximum": "at most",
    "exclusiveMinimum": "more than",
    "exclusiveMaximum": "less than",
    "minLength": "at least so long:",
    "maxLength": "at most so long:",
    "minItems": "at least so many:",
    "maxItems": "at most so many:",
}


def listed(text: str) -> Iterator[tools.Argument]:
    """List the arguments that a schema describes, each with what is inside it behind it."""
    whole = schema.mapping(text, schema.EMPTY)
    yield from _properties(whole, whole, "", 0)


def _properties(
    whole: Mapping[str, Any], part: Mapping[str, Any], before: str, depth: int
) -> Iterator[tools.Argument]:
    required = part.get("required")
    needed = set(filter(_is_text, required)) if isinstance(required, list) else set()
    properties = part.get("properties")
    for name, raw in properties.items() if isinstance(properties, Mapping) else ():
        one = _followed(whole, raw)
        path = f"{before}{texts.visible(str(name))}"
        yield tools.Argument(
            path=path,
            depth=depth,
            kind=_kind(whole, one),
            required=name in needed,
            about=_said(one.get("description") or one.get("title")),
            limits=", ".join(_limits(one)),
        )
        if depth + 1 >= DEEPEST:
            continue
        items = _followed(whole, one.get("items"))
        if items.get("properties"):
            yield from _properties(whole, items, f"{path}[].", depth + 1)
        yield from _properties(whole, one, f"{path}.", depth + 1)


def _followed(whole: Mapping[str, Any], part: Any) -> Mapping[str, Any]:
    """Give the part, or what it refers to in the same schema; empty for what is no mapping."""
    for _ in range(DEEPEST):
        reference = part.get("$ref") if isinstance(part, Mapping) else None
        if not _is_text(reference):
            break
        found: Any = whole
        for step in str(reference).removeprefix("#").strip("/").split("/"):
            found = (
                found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
            )
        rest = {key: value for key, value in part.items() if key != "$ref"}
        part = {**found, **rest} if isinstance(found, Mapping) else rest
    return part if isinstance(part, Mapping) else {}


def _kind(whole: Mapping[str, Any], part: Mapping[str, Any], depth: int = 0) -> str:
    if "const" in part:
        return _value(part["const"])
    values = part.get("enum")
    if isinstance(values, list) and values:
        return words.cut(" | ".join(map(_value, values)), LONGEST_LIMIT)
    for word in ("anyOf", "oneOf"):
        choices = part.get(word)
        # A choice may hold choices, and lead back to itself.
        if isinstance(choices, list) and choices and depth < DEEPEST_CHOICE:
            kinds = dict.fromkeys(
                _kind(whole, _followed(whole, one), depth + 1) for one in choices[:MOST_CHOICES]
            )
            return words.cut(" or ".join(kinds), LONGEST_LIMIT)
    stated = part.get("type")
    if isinstance(stated, list):
        return words.cut(" or ".join(map(_said, stated)), LONGEST_LIMIT)
    if stated == "array":
        items = _followed(whole, part.get("items"))
        return (
            f"list of {_plain(_kind(whole, items, depth + 1))}"
            if items and not items.get("items")
            else "list"
        )
    return _plain(_said(stated))


def _plain(kind: str) -> str:
    return kind or "anything"


def _limits(part: Mapping[str, Any]) -> Iterator[str]:
    for name, word in _LIMITS.items():
        if name in part:
            yield f"{word} {_value(part[name])}"
    if "default" in part:
        yield f"default {_value(part['default'])}"


def _value(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return texts.visible(words.cut(text, LONGEST_LIMIT))


def _said(value: Any) -> str:
    return texts.visible(words.cut(value, LONGEST_ABOUT)) if isinstance(value, str) else ""


def _is_text(value: Any) -> bool:
    return isinstance(value, str)
