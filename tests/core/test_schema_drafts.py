"""Tests that keywords of older drafts apply with their original meaning."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolbelt.core import schema, schema_drafts

DRAFT_07 = "http://json-schema.org/draft-07/schema#"
DRAFT_04 = "http://json-schema.org/draft-04/schema#"
CURRENT = "https://json-schema.org/draft/2020-12/schema"
POINT = {"type": "array", "items": [{"type": "number"}, {"type": "string"}]}


def tool(part: dict[str, Any], dialect: str = "") -> dict[str, Any]:
    return {"type": "object", "properties": {"at": part}, **({"$schema": dialect} if dialect else {})}


def fits(described: dict[str, Any], value: Any) -> bool:
    assert schema.problem(described) is None
    return not schema.violations(json.dumps(described), {"at": value})


@pytest.mark.parametrize("dialect", [DRAFT_07, ""], ids=["draft-07", "no-dialect"])
def test_a_list_of_items_applies_by_position(dialect: str) -> None:
    described = tool(POINT, dialect)
    assert fits(described, [1, "a", "anything"])
    assert not fits(described, ["a", 1])


def test_additional_items_apply_after_the_list_of_items() -> None:
    closed = tool({**POINT, "additionalItems": False}, DRAFT_07)
    assert fits(closed, [1, "a"])
    assert not fits(closed, [1, "a", "more"])
    numbers = tool({**POINT, "additionalItems": {"type": "number"}}, DRAFT_07)
    assert fits(numbers, [1, "a", 2])
    assert not fits(numbers, [1, "a", "b"])


def test_an_empty_list_of_items_allows_anything() -> None:
    assert fits(tool({"type": "array", "items": []}), [1, "a"])


def test_a_list_of_items_in_a_subschema_applies() -> None:
    described = {**tool({"anyOf": [{"$ref": "#/definitions/point"}]}), "definitions": {"point": POINT}}
    assert fits(described, [1, "a"])
    assert not fits(described, ["a", 1])


def test_a_list_of_items_is_invalid_in_2020_12() -> None:
    assert "not a JSON Schema at properties.at.items" in str(schema.problem(tool(POINT, CURRENT)))


@pytest.mark.parametrize("dialect", [DRAFT_04, ""], ids=["draft-04", "no-dialect"])
def test_boolean_exclusive_bounds_of_draft_4_apply(dialect: str) -> None:
    above = tool({"type": "number", "minimum": 3, "exclusiveMinimum": True}, dialect)
    assert fits(above, 4)
    assert not fits(above, 3)
    up_to = tool({"type": "number", "maximum": 3, "exclusiveMaximum": False}, dialect)
    assert fits(up_to, 3)
    assert not fits(up_to, 4)


def test_values_that_look_like_schemas_are_not_rewritten() -> None:
    named = {"items": {"type": "string"}, "exclusiveMinimum": {"type": "boolean"}}
    described = {"type": "object", "properties": named, "default": {"items": [1], "exclusiveMinimum": True}}
    assert schema_drafts.current(described) == described
    constant = tool({"const": {"items": [1]}})
    assert fits(constant, {"items": [1]})


def test_a_schema_of_2020_12_is_not_rewritten() -> None:
    described = tool({"prefixItems": [{"type": "number"}], "items": False}, CURRENT)
    assert schema_drafts.current(described) == described
