"""Tests that conflicting options of a tool's sources are reported at their paths."""

from __future__ import annotations

from typing import Any

import pytest

from toolbelt.core import belts

DEEP = {"tool": "run", "options": {"depth": 9}}


def _belt(agent: dict[str, Any], *, bound: bool = False) -> dict[str, Any]:
    """Return a belt whose agent may load two toolkits with the same tool, one of them with options for it."""
    return {
        "tools": [{"key": "think"}, {"key": "run"}],
        "toolkits": [{"key": "plain", "members": ["run"]}, {"key": "deep", "members": [DEEP]}],
        "agents": [{"key": "ada", "allowed_toolkits": ["deep", "plain"], **agent}],
        "sub_apps": [{"key": "chat", "tool_names": ["think", "run"], "agents": ["ada"] if bound else []}],
    }


@pytest.mark.parametrize(
    ("belt", "path"),
    [
        (_belt({"tools": [DEEP], "initial_toolkits": ["plain"]}), "agents.ada.initial_toolkits[0]"),
        (_belt({"initial_toolkits": ["plain", "deep"]}), "agents.ada.initial_toolkits[1]"),
        (_belt({"tools": [DEEP], "tools_config": {"plain": True}}), "agents.ada.tools_config.plain"),
        (_belt({"tools_config": {"deep": True, "plain": True}}), "agents.ada.tools_config.deep"),
        (_belt({"tools": [DEEP]}, bound=True), "sub_apps.chat.tool_names[1]"),
    ],
)
def test_a_conflict_is_reported_at_the_second_source(belt: dict[str, Any], path: str) -> None:
    (problem,) = belts.check(belt)
    assert problem.path == path
    assert "the option 'depth'" in problem.message
    assert "9" not in problem.message
    assert "Make the options equal" in problem.message


@pytest.mark.parametrize(
    "agent",
    [
        {"tools": [DEEP], "initial_toolkits": ["deep"]},
        {"tools": ["run"], "tools_config": {"plain": True}},
        {"tools": ["run"]},
        {"tools": ["run"], "tools_config": {"deep": True, "run": False}},
        {"tools": [DEEP], "initial_toolkits": ["plain"], "tools_config": {"plain": False}},
    ],
)
def test_equal_options_and_denied_tools_do_not_conflict(agent: dict[str, Any]) -> None:
    assert belts.check(_belt(agent)) == []


def test_an_invalid_belt_is_not_checked_for_conflicts() -> None:
    belt = _belt({"initial_toolkits": ["plain", "deep"], "title": 5})
    assert [problem.path for problem in belts.check(belt)] == ["agents.ada.title"]
