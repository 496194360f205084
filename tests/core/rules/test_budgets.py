"""Tests of budgets: which tools are deferred, in which order, and which never are."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from typing import Any

import pytest

from tests.core import building
from toolbelt.core import agents, catalog, policy
from toolbelt.core.rules import budgets


def tools(*keys: str, **fields: Any) -> list[catalog.Tool]:
    return [building.tool(key, tokens=10, **fields) for key in keys]


STORED = building.catalog_of(
    [*tools("a", "b", "c", "d", "e"), *tools("x", "y", default_on=True), *tools("m__one")],
    toolkits={"first": "a b", "second": "c d", "third": "d e"},
)


def resolved_for(budget: agents.Budget, session: str = "", **fields: Any) -> budgets.Resolution:
    ada = building.agent(**{"budget": budget, "allowed": "third second first", **fields})
    return budgets.resolve(building.snapshot(STORED, ada, session=building.session(session)))


def defer(most: int) -> agents.Budget:
    return agents.Budget(max_tools=most, on_exceed="defer")


def test_tools_within_the_budget_stay_active() -> None:
    resolved = resolved_for(defer(4), "first")
    assert (list(resolved.active), resolved.deferred) == (["a", "b", "x", "y"], {})
    assert (resolved.spent.tools, resolved.spent.tokens, resolved.spent.is_exceeded) == (4, 40, False)


@pytest.mark.parametrize(
    ("most", "active"),
    [
        (7, "a b c d e x y"),
        (6, "a b c d e x"),
        (5, "a b c d e"),
        (4, "c d e"),
        (3, "c d e"),
        (2, "d e"),
        (1, ""),
        (0, ""),
    ],
)
def test_defaults_are_deferred_first_then_loads_from_the_oldest(most: int, active: str) -> None:
    assert list(resolved_for(defer(most), "first second third").active) == active.split()


@pytest.mark.parametrize(("most", "active"), [(5, "a b c d e"), (4, "a b c"), (2, "a b"), (1, "")])
def test_initial_toolkits_are_deferred_whole_from_the_last(most: int, active: str) -> None:
    assert list(resolved_for(defer(most), initial="third first second").active) == active.split()


def test_loaded_toolkits_are_deferred_after_initial_toolkits() -> None:
    assert list(resolved_for(defer(2), "third", initial="first second").active) == ["d", "e"]


def test_a_tool_of_a_later_load_stays_when_an_earlier_load_is_deferred() -> None:
    assert list(resolved_for(defer(2), "third second").active) == ["c", "d"]


def test_policy_texts_count_toward_the_token_budget() -> None:
    kit = building.toolkit("kit", "a", policy="Five words of policy text.", policy_when_off="Off.")
    stored = dataclasses.replace(
        building.catalog_of(tools("a"), toolkits=[kit]), count_tokens=lambda text: len(text.split())
    )
    on = budgets.resolve(building.snapshot(stored, building.agent(tools="a"))).spent
    assert (on.tokens, on.policy_tokens) == (18, 8)
    off = budgets.resolve(building.snapshot(stored, building.agent(switches={"kit": False}))).spent
    assert (off.tools, off.tokens) == (0, 4)
    unconcerned = budgets.resolve(building.snapshot(stored, building.agent())).spent
    assert (unconcerned.tools, unconcerned.tokens) == (0, 0)
    most = agents.Budget(max_tokens=17, on_exceed="defer")
    resolved = budgets.resolve(
        building.snapshot(stored, building.agent(allowed="kit", initial="kit", budget=most))
    )
    assert (list(resolved.active), resolved.spent.tokens) == ([], 4)


def test_policy_tokens_are_counted_only_near_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []

    def count(stored: catalog.Catalog, active: Collection[str], concerned: Collection[str]) -> int:
        counted.append(len(active))
        return 5

    monkeypatch.setattr(policy, "tokens", count)
    stored = building.catalog_of(tools(*(f"t{number:03}" for number in range(100)), default_on=True))
    budget = agents.Budget(max_tokens=204, on_exceed="defer")
    resolution = budgets.resolve(building.snapshot(stored, building.agent(budget=budget)))
    assert len(resolution.active) == 19
    assert counted == [20, 19]


def test_tools_loaded_by_name_are_deferred_after_loadout_tools() -> None:
    stored = building.catalog_of("git__a git__b calc zoo")
    ada = building.agent(budget=defer(2), loadout="developer")
    session = building.session(tools="calc zoo")
    resolved = budgets.resolve(building.snapshot(stored, ada, session=session))
    assert list(resolved.active) == ["calc", "zoo"]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"tools": "c d e"}, "always-on"),
        ({"overrides": dict.fromkeys("cde", True)}, "override-on"),
        ({"switches": {"second": True, "third": True}}, "switch-on"),
    ],
)
def test_always_on_tools_and_explicit_switches_are_never_deferred(fields: Any, code: str) -> None:
    resolved = resolved_for(defer(0), "first second third", **fields)
    assert {key: decision.code for key, decision in resolved.active.items()} == {
        "c": code,
        "d": code,
        "e": code,
    }
    assert resolved.spent.is_exceeded


def test_tools_of_a_sub_app_are_never_deferred() -> None:
    room = catalog.SubApp(key="room", tool_names=("a",), agents=("ada",))
    stored = building.catalog_of("a b", toolkits={"kit": "a b"}, sub_apps=[room])
    ada = building.agent(budget=defer(0), allowed="kit", initial="kit")
    assert building.active(stored, ada) == ["a"]


def test_an_always_on_tool_stays_when_its_toolkit_is_deferred() -> None:
    assert list(resolved_for(defer(3), "second first", tools="d").active) == ["a", "b", "d"]


def test_deferred_tools_are_discoverable_with_the_reason_budget() -> None:
    resolved = resolved_for(defer(2), "second first")
    assert sorted(resolved.deferred) == ["c", "d", "x", "y"]
    assert resolved.decision("c") == ("c", "discoverable", "budget", 10, ("budget", "second", ""))
    assert resolved.decision("x") == ("x", "discoverable", "budget", 10, ("budget", "x", ""))
    assert [decision.tool for decision in resolved.discoverable()] == ["c", "d", "e", "x", "y"]
    assert resolved.has_discoverable()


def test_a_token_budget_defers_tools() -> None:
    resolved = resolved_for(agents.Budget(max_tokens=25, on_exceed="defer"), "first")
    assert (list(resolved.active), resolved.spent.tokens) == (["a", "b"], 20)


@pytest.mark.parametrize("on_exceed", ["warn", "refuse"])
def test_warn_and_refuse_budgets_defer_nothing(on_exceed: Any) -> None:
    resolved = resolved_for(agents.Budget(max_tools=1, on_exceed=on_exceed), "first")
    assert (len(resolved.active), resolved.deferred, resolved.spent.is_exceeded) == (4, {}, True)


def test_a_default_tool_is_deferred_together_with_its_toolkit() -> None:
    stored = building.catalog_of(
        [building.tool("web", default_on=True), "a", "b"], toolkits={"repo": "a b", "net": "web"}
    )
    ada = building.agent(budget=defer(2), allowed="repo", initial="repo")
    assert building.active(stored, ada) == ["a", "b"]


def test_nothing_is_discoverable_without_loadable_toolkits_or_patterns() -> None:
    resolved = budgets.resolve(building.snapshot(STORED, building.agent()))
    assert not resolved.has_discoverable()
    assert list(resolved.discoverable()) == []


def test_patterns_match_only_tools_that_are_not_active_or_denied() -> None:
    ada = building.agent(loadout="minimal", overrides={"a": False}, tools="b")
    resolved = budgets.resolve(building.snapshot(STORED, ada))
    assert [decision.tool for decision in resolved.discoverable()] == ["c", "d", "e", "m__one", "x", "y"]
    assert resolved.has_discoverable()


def test_all_decisions_are_in_key_order() -> None:
    resolved = resolved_for(defer(2), "first")
    everything = resolved.all_decisions()
    assert list(everything) == sorted(STORED.tools)
    assert {key for key, decision in everything.items() if decision.state == "active"} == set(resolved.active)


@pytest.mark.parametrize(
    ("before", "after", "is_worse"),
    [
        ((3, 30), (4, 40), False),
        ((4, 40), (5, 50), True),
        ((6, 60), (6, 60), False),
        ((6, 60), (5, 50), False),
        ((6, 60), (6, 70), False),
        ((6, 60), (7, 60), True),
        ((3, 200), (4, 150), False),
    ],
)
def test_a_change_worsens_a_budget_only_if_it_passes_it_or_adds_to_what_exceeds_it(
    before: tuple[int, int], after: tuple[int, int], is_worse: bool
) -> None:
    spent = [
        budgets.Spent(tools=tools_, tokens=tokens, budget=agents.Budget(max_tools=4, max_tokens=100))
        for tools_, tokens in (before, after)
    ]
    assert budgets.is_worsened(spent[0], spent[1]) is is_worse
