"""The OpenAPI schemas of entries and belts, derived from the vocabulary of belts.

`toolbelt.control` validates entries and reports every problem with its path, with the same messages as for belts and in
the dashboard. These models therefore accept any JSON object, and only document what is valid.
"""

from __future__ import annotations

from typing import Any

import pydantic

from toolbelt.core import belts, keys
from toolbelt.core.belts import shapes

# The form of entries' names (core.keys); toolbelt.control checks which of them are taken or reserved.
_NAME = {
    "type": "string",
    "minLength": 1,
    "maxLength": keys.MAX_LENGTH,
    "pattern": "^[A-Za-z0-9_.-]*[A-Za-z0-9_-][A-Za-z0-9_.-]*$",
}
_KEY = {**_NAME, "pattern": "^[a-zA-Z_][a-zA-Z0-9_-]*$"}
_NAMES = {"tool": _KEY, "toolkit": _KEY}


class Entry(pydantic.RootModel[dict[str, Any]]):
    """A JSON object that `toolbelt.control` validates."""


def entry_model(kind: belts.KindName) -> type[Entry]:
    """Return the model of an entry of this kind."""
    return _model(kind, "Entry", _entry(kind))


def changes_model(kind: belts.KindName) -> type[Entry]:
    """Return the model of the changes to an entry of this kind: any of its fields; null resets a field."""
    json_schema = _entry(kind)
    json_schema["properties"].pop(belts.KINDS[kind].named_by)
    del json_schema["required"]
    return _model(kind, "Changes", json_schema)


def belt_schema() -> dict[str, Any]:
    """Return the schema of a belt."""
    sections = {
        kind.section: {"type": "array", "items": _schema_of(kind.shape)} for kind in belts.KINDS.values()
    }
    return {"type": "object", "title": "Belt", "properties": sections, "additionalProperties": False}


def _model(kind: belts.KindName, suffix: str, json_schema: dict[str, Any]) -> type[Entry]:
    name = "".join(word.capitalize() for word in kind.split("_")) + suffix
    config = pydantic.ConfigDict(
        json_schema_extra=lambda schema: _replace(schema, {"title": name, **json_schema})
    )
    return type(name, (Entry,), {"model_config": config, "__doc__": None, "__module__": __name__})


def _replace(schema: dict[str, Any], json_schema: dict[str, Any]) -> None:
    schema.clear()
    schema.update(json_schema)


def _entry(kind: belts.KindName) -> dict[str, Any]:
    shape, name = belts.KINDS[kind].shape, _NAMES.get(kind, _NAME)
    if isinstance(shape, shapes.Fields):
        json_schema = _schema_of(shape)
        json_schema["properties"][belts.KINDS[kind].named_by] = name
        return json_schema
    return {
        "type": "object",
        "properties": {"name": name},
        "required": ["name"],
        "additionalProperties": False,
    }


def _schema_of(shape: shapes.Shape) -> dict[str, Any]:
    match shape:
        case shapes.Text():
            return {"type": "string"}
        case shapes.YesNo():
            return {"type": "boolean"}
        case shapes.Moment():
            return {"type": "string", "format": "date-time"}
        case shapes.Whole():
            return {"type": "integer", "minimum": 0, "maximum": shapes.MAX_INTEGER}
        case shapes.OneOf(words):
            return {"type": "string", "enum": ["", *words]}
        case shapes.Json():
            return {"type": "object"}
        case shapes.Each(item):
            return {"type": "array", "items": _schema_of(item)}
        case shapes.Pairs(value):
            return {"type": "object", "additionalProperties": _or_null(value)}
        case shapes.Fields(fields, required):
            return {
                "type": "object",
                "properties": {
                    key: _schema_of(field_shape) if key in required else _or_null(field_shape)
                    for key, field_shape in fields.items()
                },
                "required": list(required),
                "additionalProperties": False,
            }
        case shapes.Use():
            with_options = shapes.Fields({"tool": shapes.Text(), "options": shapes.Json()}, ("tool",))
            return {"anyOf": [{"type": "string"}, _schema_of(with_options)]}
    return {}


def _or_null(shape: shapes.Shape) -> dict[str, Any]:
    return {"anyOf": [_schema_of(shape), {"type": "null"}]}
