"""Tests of definitions: what a model receives for a tool."""

from __future__ import annotations

import hashlib
import json

import pytest

from tests.core import building
from toolbelt.core import definitions

FULL = building.tool(
    "git__push",
    title="Push",
    description="Pushes.",
    input_schema='{"type":"object","properties":{"to":{"type":"string"}}}',
    output_schema='{"type":"object"}',
    annotations='{"readOnlyHint":false}',
    tokens=42,
)


def test_a_definition_contains_what_the_model_receives() -> None:
    stored = building.catalog_of([FULL], toolkits={"repo": "git__push"})
    assert definitions.of(stored, "git__push").document() == {
        "name": "git__push",
        "title": "Push",
        "description": "Pushes.",
        "input_schema": {"type": "object", "properties": {"to": {"type": "string"}}},
        "output_schema": {"type": "object"},
        "annotations": {"readOnlyHint": False},
        "toolkits": ["repo"],
        "tokens": 42,
    }


def test_absent_fields_are_not_sent() -> None:
    document = definitions.of(building.catalog_of("run"), "run").document()
    assert "title" not in document
    assert "output_schema" not in document
    assert document["input_schema"] == {"type": "object", "properties": {}}


def test_the_digest_is_computed_from_the_canonical_text() -> None:
    definition = definitions.of(building.catalog_of([FULL]), "git__push")
    assert json.loads(definition.text) == definition.document()
    assert definition.digest == hashlib.sha256(definition.text.encode()).digest()


def test_a_definition_is_cached_per_catalog() -> None:
    stored = building.catalog_of([FULL])
    assert definitions.of(stored, "git__push") is definitions.of(stored, "git__push")


def test_equal_tools_have_equal_digests_in_different_catalogs() -> None:
    small, large = building.catalog_of([FULL]), building.catalog_of([FULL, "run"])
    assert definitions.of(small, "git__push").digest == definitions.of(large, "git__push").digest


@pytest.mark.parametrize("text", ["{", "[1]", "null"])
def test_json_that_is_not_an_object_counts_as_absent(text: str) -> None:
    tool = building.tool("run", input_schema=text, output_schema=text, annotations=text)
    definition = definitions.of(building.catalog_of([tool]), "run")
    assert definition.input_schema == {"type": "object", "properties": {}}
    assert (definition.output_schema, definition.annotations) == (None, {})
