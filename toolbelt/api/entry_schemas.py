"""The OpenAPI schemas of entries and belts: those of the models of entries.

`toolbelt.control` validates entries and reports every problem with its path, with the same messages as for belts and in
the dashboard. The models here therefore accept any JSON object, and only document what is valid.
"""

from __future__ import annotations

from typing import Any

import pydantic

from toolbelt.core import belts
from toolbelt.core.belts import fields, vocabulary


class Entry(pydantic.RootModel[dict[str, Any]]):
    """A JSON object that `toolbelt.control` validates."""


class _Category(fields.Fields):
    """A category of tools."""

    name: vocabulary.EntryName


def entry_model(kind: belts.KindName) -> type[Entry]:
    """Return the model of an entry of this kind."""
    return _documented(f"{_title(kind)}Entry", _model(kind))


def changes_model(kind: belts.KindName) -> type[Entry]:
    """Return the model of the changes to an entry of this kind: any of its fields; null resets a field."""
    changeable = {
        name: (field.rebuild_annotation(), field)
        for name, field in _model(kind).model_fields.items()
        if not field.is_required()
    }
    name = f"{_title(kind)}Changes"
    changes: Any = pydantic.create_model(name, __base__=fields.Fields, __doc__="", **changeable)  # type: ignore[call-overload]
    return _documented(name, changes)


def belt_schema() -> dict[str, Any]:
    """Return the schema of a belt, whose entries the document describes as well."""
    sections = {
        kind.section: {"type": "array", "items": {"$ref": f"#/components/schemas/{_title(name)}Entry"}}
        for name, kind in belts.KINDS.items()
    }
    sections["categories"]["items"] = {"type": "string"}
    return {"type": "object", "title": "Belt", "properties": sections, "additionalProperties": False}


def _title(kind: belts.KindName) -> str:
    return "".join(word.capitalize() for word in kind.split("_"))


def _model(kind: belts.KindName) -> type[fields.Fields]:
    return belts.KINDS[kind].model if belts.KINDS[kind].named_by else _Category


def _documented(name: str, model: type[fields.Fields]) -> type[Entry]:
    """Return a model that accepts any object, with the schema of another model."""

    def schema(cls: type[Entry], core_schema: Any, handler: pydantic.GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler.resolve_ref_schema(handler(pydantic.TypeAdapter(model).core_schema)), "title": name}

    members = {"__get_pydantic_json_schema__": classmethod(schema), "__doc__": None, "__module__": __name__}
    return type(name, (Entry,), members)
