"""What may an entry hold? The schemas of the OpenAPI document, made from the vocabulary of belts.

An entry goes to the door as it was sent: the door judges it, and says every problem with its path, in the words that
screens and belts use. So these models take any object, and only tell what the door will take.
"""

from __future__ import annotations

from typing import Any

import pydantic

from toolbelt.core import belts, keys
from toolbelt.core.belts import shapes

# What the names of entries consist of (core.keys); the door says which of them are taken or reserved.
_NAME = {
    "type": "string",
    "minLength": 1,
    "maxLength": keys.LONGEST,
    "pattern": "^[A-Za-z0-9_.-]*[A-Za-z0-9_-][A-Za-z0-9_.-]*$",
}
_KEY = {**_NAME, "pattern": "^[a-zA-Z_][a-zA-Z0-9_-]*$"}
_NAMES = {"tool": _KEY, "toolkit": _KEY}


class Entry(pydantic.RootModel[dict[str, Any]]):
    """A JSON object that the door will judge."""


def whole(kind: belts.KindName) -> type[Entry]:
    """Give the model of an entry of this kind."""
    return _model(kind, "Entry", _entry(kind))


def changes(kind: belts.KindName) -> type[Entry]:
    """Give the model of what may be changed in an entry of this kind: each key, or some; null: back to its default."""
    shown = _entry(kind)
    shown["properties"].pop(belts.KINDS[kind].named_by)
    del shown["required"]
    return _model(kind, "Changes", shown)


def belt() -> dict[str, Any]:
    """Give the schema of a belt."""
    sections = {kind.section: {"type": "array", "items": _shown(kind.shape)} for kind in belts.KINDS.values()}
    return {"type": "object", "title": "Belt", "properties": sections, "additionalProperties": False}


def _model(kind: belts.KindName, suffix: str, shown: dict[str, Any]) -> type[Entry]:
    name = "".join(word.capitalize() for word in kind.split("_")) + suffix
    config = pydantic.ConfigDict(json_schema_extra=lambda schema: _replace(schema, {"title": name, **shown}))
    return type(name, (Entry,), {"model_config": config, "__doc__": None, "__module__": __name__})


def _replace(schema: dict[str, Any], shown: dict[str, Any]) -> None:
    schema.clear()
    schema.update(shown)


def _entry(kind: belts.KindName) -> dict[str, Any]:
    shape, name = belts.KINDS[kind].shape, _NAMES.get(kind, _NAME)
    if isinstance(shape, shapes.Fields):
        shown = _shown(shape)
        shown["properties"][belts.KINDS[kind].named_by] = name
        return shown
    return {
        "type": "object",
        "properties": {"name": name},
        "required": ["name"],
        "additionalProperties": False,
    }


def _shown(shape: shapes.Shape) -> dict[str, Any]:
    match shape:
        case shapes.Text():
            return {"type": "string"}
        case shapes.YesNo():
            return {"type": "boolean"}
        case shapes.Moment():
            return {"type": "string", "format": "date-time"}
        case shapes.Whole():
            return {"type": "integer", "minimum": 0, "maximum": shapes.LARGEST}
        case shapes.OneOf(words):
            return {"type": "string", "enum": ["", *words]}
        case shapes.Json():
            return {"type": "object"}
        case shapes.Each(item):
            return {"type": "array", "items": _shown(item)}
        case shapes.Pairs(value):
            return {"type": "object", "additionalProperties": _or_null(value)}
        case shapes.Fields(fields, required):
            return {
                "type": "object",
                "properties": {
                    key: _shown(one) if key in required else _or_null(one) for key, one in fields.items()
                },
                "required": list(required),
                "additionalProperties": False,
            }
        case shapes.Use():
            with_options = shapes.Fields({"tool": shapes.Text(), "options": shapes.Json()}, ("tool",))
            return {"anyOf": [{"type": "string"}, _shown(with_options)]}
    return {}


def _or_null(shape: shapes.Shape) -> dict[str, Any]:
    return {"anyOf": [_shown(shape), {"type": "null"}]}
