"""Tests that a delta contains exactly the tools that have changed."""

from __future__ import annotations

from typing import Any

from toolbelt.core import definitions, tool_deltas


def defined(name: str, **fields: Any) -> definitions.Definition:
    given: dict[str, Any] = {"description": "Does it.", "input_schema": {}, "annotations": {}, **fields}
    return definitions.define(name=name, **given)


def test_a_hash_depends_on_name_description_and_schema_only() -> None:
    (before,) = tool_deltas.hashes([defined("a")]).values()
    elsewhere = defined("a", toolkits=("kit",), tokens=9, title="A", annotations={"readOnlyHint": True})
    assert list(tool_deltas.hashes([elsewhere]).values()) == [before]
    for other in (
        defined("b"),
        defined("a", description="Does more."),
        defined("a", input_schema={"type": "object"}),
    ):
        assert before not in tool_deltas.hashes([other]).values()


def test_hashes_are_in_the_order_of_names() -> None:
    assert list(tool_deltas.hashes([defined("b"), defined("a")])) == ["a", "b"]


def test_a_delta_lists_added_removed_and_changed_tools() -> None:
    delta = tool_deltas.difference(
        {"new": "1", "a": "1", "kept": "1", "b": "2"}, {"b": "1", "kept": "1", "gone": "1", "a": "0"}
    )
    assert delta.document() == {"added": ["new"], "removed": ["gone"], "changed": ["a", "b"]}


def test_equal_tools_have_an_empty_delta() -> None:
    now = tool_deltas.hashes([defined("a"), defined("b")])
    assert tool_deltas.difference(now, now).document() == {"added": [], "removed": [], "changed": []}
