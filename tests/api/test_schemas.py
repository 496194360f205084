"""The OpenAPI document describes each shape under a unique name."""

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

DOCUMENT = application.api.get_openapi_schema(path_prefix="")


def test_no_two_shapes_share_a_name() -> None:
    """Ninja keeps them by name: of two that share one, the document would tell one."""
    named: dict[str, set[Any]] = defaultdict(set)
    for module in pkgutil.iter_modules(api.__path__):
        for found in vars(importlib.import_module(f"toolbelt.api.{module.name}")).values():
            is_shape = isinstance(found, type) and issubclass(found, (ninja.Schema, pydantic.RootModel))
            # Problems of the query string are reported for each parameter.
            if is_shape and not issubclass(found, schemas.Query):
                named[found.__name__].add(found)
    assert {name: shapes for name, shapes in named.items() if len(shapes) > 1} == {}


def test_every_operation_is_described_and_has_a_place() -> None:
    for _, path, described in application.described_operations(DOCUMENT):
        assert described["description"], path
        assert len(described["tags"]) == 1, path


@pytest.mark.parametrize("kind", belts.KINDS)
def test_the_schema_of_an_entry_names_every_field_that_it_may_have(kind: belts.KindName) -> None:
    shown = entry_schemas.entry_model(kind).model_json_schema()
    assert tuple(shown["properties"]) == (belts.KINDS[kind].fields or ("name",))
    assert shown["additionalProperties"] is False


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
def test_the_schema_of_an_entry_takes_what_the_door_takes(
    kind: belts.KindName, entry: dict[str, Any], fits: bool
) -> None:
    shown = entry_schemas.entry_model(kind).model_json_schema()
    written = entry["name"] if kind == "category" else entry
    assert (schema.violations(json.dumps(shown), entry) == ()) is fits
    assert (list(belts.KINDS[kind].shape.problems(written, ())) == []) is fits


def test_what_may_be_changed_is_everything_but_the_name() -> None:
    shown = entry_schemas.changes_model("agent").model_json_schema()
    assert set(shown["properties"]) == {*belts.KINDS["agent"].fields} - {"key"}
    assert schema.violations(json.dumps(shown), {"tools_config": None, "title": "x"}) == ()
