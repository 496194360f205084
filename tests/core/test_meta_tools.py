"""Tests of the meta-tool definitions that a model receives."""

from __future__ import annotations

import pytest

from toolbelt.core import definitions, keys, meta_tools, schema


def test_the_names_of_meta_tools_are_reserved() -> None:
    assert set(meta_tools.DEFINITIONS) == {"list_toolkits", "load_tools", "unload_tools", "search_tools"}
    assert set(meta_tools.DEFINITIONS) < keys.RESERVED


@pytest.mark.parametrize("definition", meta_tools.DEFINITIONS.values(), ids=list(meta_tools.DEFINITIONS))
def test_each_meta_tool_has_a_valid_closed_schema_and_correct_annotations(
    definition: definitions.Definition,
) -> None:
    assert schema.problem(definition.input_schema) is None
    assert definition.input_schema["additionalProperties"] is False
    is_read_only = definition.name in (meta_tools.LIST, meta_tools.SEARCH)
    assert definition.annotations["readOnlyHint"] is is_read_only
    assert definition.annotations["destructiveHint"] is False


def test_descriptions_say_that_loading_applies_from_the_next_request() -> None:
    for name in (meta_tools.LOAD, meta_tools.UNLOAD):
        assert "next request" in meta_tools.DEFINITIONS[name].description
