"""Tests that a lenient load reads an invalid belt as far as possible."""

from __future__ import annotations

from typing import Any

import pytest

from toolbelt.core import belts, catalog


def test_a_lenient_load_skips_invalid_parts() -> None:
    document = {
        "categories": ["crm", 5, "git"],
        "plugins": [{"name": "p", "status": "odd", "active": "no"}, {"name": " "}, "q"],
        "tools": [
            {"key": "x", "plugin": "ghost", "default_on": 1, "input_schema": [], "unheard": 1},
            {"description": "d"},
        ],
        "toolkits": [
            {"key": "k", "members": ["x", "ghost", 5, {"tool": "x"}], "triggers": ["t", {"any": ["a", 1]}]}
        ],
        "loadouts": [
            {"name": "a", "parent": "b", "plugins": ["p"], "disabled": ["P", None]},
            {"name": "b", "parent": "a"},
        ],
        "agents": [
            {
                "key": "ada",
                "kind": "odd",
                "loadout": "ghost",
                "tools": ["ghost", "x"],
                "tools_config": {"k": 1, "x": True, "ghost": True, "": False},
                "allowed_toolkits": ["k", "ghost", "k"],
                "initial_toolkits": ["ghost", "k"],
                "budget": {"max_tools": "3", "max_tokens": 5},
            }
        ],
        "sub_apps": [{"key": "s", "tool_names": "x"}],
        "odd": 1,
    }
    belt = belts.load(document, lenient=True)
    assert belts.dump(belt) == {
        "categories": ["crm"],
        "plugins": [{"name": "p"}],
        "tools": [{"key": "x", "plugin": "ghost"}],
        "toolkits": [{"key": "k", "members": ["x"], "triggers": [{"name": "", "any": ["a"]}]}],
        "loadouts": [
            {"name": "a", "parent": "b", "plugins": ["p"], "disabled": ["P"]},
            {"name": "b", "parent": "a"},
        ],
        "agents": [
            {
                "key": "ada",
                "loadout": "ghost",
                "tools": ["x"],
                "tools_config": {"x": True},
                "allowed_toolkits": ["k"],
                "initial_toolkits": ["k"],
                "budget": {"max_tokens": 5},
            }
        ],
        "sub_apps": [{"key": "s"}],
    }


@pytest.mark.parametrize("document", [None, 5, "belt", [], {"tools": 5}, {"agents": {"ada": {}}}])
def test_a_lenient_load_accepts_any_document(document: Any) -> None:
    assert belts.dump(belts.load(document, lenient=True)) == {}


def test_json_that_is_too_deep_is_reported_and_skipped_leniently() -> None:
    deep: dict[str, Any] = {}
    for _ in range(10_000):
        deep = {"a": deep}
    document = {"tools": [{"key": "x", "input_schema": deep, "annotations": {"n": 10**5000}}]}
    assert [problem.path for problem in belts.check(document)] == [
        "tools.x.input_schema",
        "tools.x.annotations",
    ]
    assert belts.load(document, lenient=True).catalog.tools["x"] == catalog.Tool(key="x")
