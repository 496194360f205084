"""Tests that the OpenAPI document describes each schema under a unique name."""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections import defaultdict
from typing import Any

import ninja
import pydantic
import pytest

from toolbelt import api
from toolbelt.api import application, entry_schemas, schemas
from toolbelt.core import belts, schema
from toolbelt.core.belts import fields, vocabulary

DOCUMENT = application.api.get_openapi_schema(path_prefix="")


def test_schema_class_names_are_unique() -> None:
    """Ninja registers schemas by name: of two with the same name, the document would only have one."""
    classes_by_name: dict[str, set[Any]] = defaultdict(set)
    modules = [
        importlib.import_module(f"toolbelt.api.{module.name}")
        for module in pkgutil.iter_modules(api.__path__)
    ]
    for module in (*modules, fields, vocabulary):
        for value in vars(module).values():
            is_schema = isinstance(value, type) and issubclass(
                value, (ninja.Schema, pydantic.RootModel, fields.Fields)
            )
            # Problems of the query string are reported for each parameter, and entries have names of their own.
            entries = {kind.model for kind in belts.KINDS.values()}
            if is_schema and not issubclass(value, schemas.Query) and value not in entries:
                classes_by_name[value.__name__].add(value)
    assert {name: shapes for name, shapes in classes_by_name.items() if len(shapes) > 1} == {}


def test_no_schema_is_named_as_generators_of_clients_name_a_choice_of_another() -> None:
    """They make an enumeration ThingState of the field `state` of Thing, and drop both if there is a ThingState."""
    described = DOCUMENT["components"]["schemas"]
    choices = {
        name + field.title().replace("_", "")
        for name, shape in described.items()
        for field, of_field in shape.get("properties", {}).items()
        if "enum" in json.dumps(of_field)
    }
    assert choices & {*described} == set()


def test_every_operation_has_a_description_and_one_tag() -> None:
    for _, path, described in application.described_operations(DOCUMENT):
        assert described["description"], path
        assert len(described["tags"]) == 1, path


@pytest.mark.parametrize("kind", belts.KINDS)
def test_the_schema_of_an_entry_has_every_field_of_its_kind(kind: belts.KindName) -> None:
    json_schema = entry_schemas.entry_model(kind).model_json_schema()
    assert tuple(json_schema["properties"]) == (belts.KINDS[kind].fields or ("name",))
    assert json_schema["additionalProperties"] is False


ENTRIES: list[tuple[belts.KindName, dict[str, Any], bool]] = [
    ("agent", {"key": "a", "kind": "plan", "budget": {"max_tools": 3}, "tools": ["t", {"tool": "u"}]}, True),
    ("agent", {"key": "a", "tools_config": {"t": True, "u": None}, "kind": ""}, True),
    ("agent", {"key": "a", "tools_config": {"t": 1}}, False),
    ("agent", {"key": "a", "colour": "red"}, False),
    ("agent", {"kind": "plan"}, False),
    ("toolkit", {"key": "k", "triggers": [{"name": "n", "all": [["a"]], "tool_choice": "required"}]}, True),
    ("toolkit", {"key": "k", "triggers": [{"any": ["a"]}]}, False),
    ("tool", {"key": "t", "input_schema": [], "title": "x"}, False),
    ("category", {"name": "crm"}, True),
]


@pytest.mark.parametrize(("kind", "entry", "fits"), ENTRIES)
def test_the_schema_of_an_entry_accepts_what_validation_accepts(
    kind: belts.KindName, entry: dict[str, Any], fits: bool
) -> None:
    json_schema = entry_schemas.entry_model(kind).model_json_schema()
    written = entry["name"] if kind == "category" else entry
    assert (schema.violations(json.dumps(json_schema), entry) == ()) is fits
    assert (fields.read(belts.KINDS[kind].model, written)[1] == []) is fits


def test_every_field_except_the_name_can_be_changed() -> None:
    json_schema = entry_schemas.changes_model("agent").model_json_schema()
    assert set(json_schema["properties"]) == {*belts.KINDS["agent"].fields} - {"key"}
    assert schema.violations(json.dumps(json_schema), {"tools_config": None, "title": "x"}) == ()


def test_request_bodies_are_described_as_json_which_every_generator_of_clients_knows() -> None:
    types = {
        media_type
        for methods in DOCUMENT["paths"].values()
        for operation in methods.values()
        for media_type in operation.get("requestBody", {}).get("content", ())
    }
    assert types == {"application/json"}
