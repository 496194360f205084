"""Agents: the loadout in force, the flat tools_config, what a budget allows."""

from __future__ import annotations

import pytest

from toolbelt.core import agents


@pytest.mark.parametrize(
    ("kind", "loadout"),
    [
        ("explore", "research"),
        ("task", "minimal"),
        ("plan", "developer"),
        ("review", "developer"),
        ("general", "full"),
        ("", ""),
    ],
)
def test_an_agent_takes_the_loadout_of_its_kind(kind: str, loadout: str) -> None:
    assert agents.Agent(key="ada", kind=kind).loadout_name() == loadout


def test_an_agents_own_loadout_comes_before_its_kinds() -> None:
    assert agents.Agent(key="ada", kind="general", loadout="minimal").loadout_name() == "minimal"


def test_the_map_of_kinds_is_a_setting() -> None:
    ada = agents.Agent(key="ada", kind="plan")
    assert ada.loadout_name({"plan": "house"}) == "house"
    assert ada.loadout_name({}) == ""


def test_the_flat_form_holds_switches_and_overrides_side_by_side_in_order() -> None:
    ada = agents.Agent(key="ada", switches={"web": True, "dev": False}, overrides={"run": True})
    assert list(ada.tools_config().items()) == [("dev", False), ("run", True), ("web", True)]


@pytest.mark.parametrize(
    ("budget", "is_exceeded"),
    [
        (agents.Budget(), False),
        (agents.Budget(max_tools=2), False),
        (agents.Budget(max_tools=1), True),
        (agents.Budget(max_tools=0), True),
        (agents.Budget(max_tokens=100), False),
        (agents.Budget(max_tokens=99), True),
        (agents.Budget(max_tools=2, max_tokens=99), True),
    ],
)
def test_a_budget_is_passed_by_more_than_it_allows_and_not_by_as_much(
    budget: agents.Budget, is_exceeded: bool
) -> None:
    assert budget.exceeded_by(tools=2, tokens=100) is is_exceeded
