"""Tests of agents: the effective loadout, the flat tools_config, and when a budget is exceeded."""

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
def test_an_agent_uses_the_loadout_of_its_kind(kind: str, loadout: str) -> None:
    assert agents.Agent(key="ada", kind=kind).loadout_name() == loadout


def test_an_agents_own_loadout_overrides_that_of_its_kind() -> None:
    assert agents.Agent(key="ada", kind="general", loadout="minimal").loadout_name() == "minimal"


def test_the_loadout_of_each_kind_is_configurable() -> None:
    ada = agents.Agent(key="ada", kind="plan")
    assert ada.loadout_name({"plan": "house"}) == "house"
    assert ada.loadout_name({}) == ""


def test_tools_config_lists_switches_and_overrides_together_in_key_order() -> None:
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
def test_a_budget_is_exceeded_only_above_its_limits(budget: agents.Budget, is_exceeded: bool) -> None:
    assert budget.exceeded_by(tools=2, tokens=100) is is_exceeded
