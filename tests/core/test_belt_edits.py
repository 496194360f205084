"""Tests of edits: an operator's partial changes to a belt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolbelt.core import belt_edits


def test_an_edit_replaces_the_named_fields_and_adds_new_entries() -> None:
    before = {
        "agents": [{"key": "ada", "kind": "plan", "tools_config": {"a": True, "b": True}}],
        "loadouts": None,
    }
    entries: Mapping[str, list[dict[str, Any]]] = {
        "agents": [{"key": "ada", "tools_config": {"a": False}}, {"key": "bob"}],
        "loadouts": [{"name": "house"}],
    }
    assert belt_edits.apply_edit(before, entries) == {
        "agents": [{"key": "ada", "kind": "plan", "tools_config": {"a": False}}, {"key": "bob"}],
        "loadouts": [{"name": "house"}],
    }
    assert before["agents"] == [{"key": "ada", "kind": "plan", "tools_config": {"a": True, "b": True}}]
