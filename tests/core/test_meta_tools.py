"""The definitions of the meta-tools that a model receives."""

from __future__ import annotations

import pytest

from toolbelt.core import definitions, keys, meta_tools, schema


def test_the_meta_tools_bear_reserved_names() -> None:
    assert set(meta_tools.DEFINITIONS) == {"list_toolkits", "load_tools", "unload_tools", "search_tools"}
    assert set(meta_tools.DEFINITIONS) < keys.RESERVED


@pytest.mark.parametrize("definition", meta_tools.DEFINITIONS.values(), ids=list(meta_tools.DEFINITIONS))
def test_each_has_a_sound_closed_schema_and_honest_annotations(
    definition: definitions.Definition,
) -> None:
    assert schema.problem(definition.input_schema) is None
    assert definition.input_schema["additionalProperties"] is False
    is_reading = definition.name in (meta_tools.LIST, meta_tools.SEARCH)
    assert definition.annotations["readOnlyHint"] is is_reading
    assert definition.annotations["destructiveHint"] is False


def test_a_load_is_said_to_count_from_the_next_request() -> None:
    for name in (meta_tools.LOAD, meta_tools.UNLOAD):
        assert "next request" in meta_tools.DEFINITIONS[name].description
