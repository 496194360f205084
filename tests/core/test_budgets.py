"""Budgets: what goes, in which order, and what never does."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from typing import Any

import pytest

from tests.core import building
from toolbelt.core import agents, budgets, catalog, policy


def tools(*keys: str, **fields: Any) -> list[catalog.Tool]:
    return [building.tool(key, tokens=10, **fields) for key in keys]


STORED = building.catalog_of(
    [*tools("a", "b", "c", "d", "e"), *tools("x", "y", default_on=True), *tools("m__one")],
    toolkits={"first": "a b", "second": "c d", "third": "d e"},
)


def fitted(budget: agents.Budget, session: str = "", **fields: Any) -> budgets.Resolution:
    ada = building.agent(**{"budget": budget, "allowed": "third second first", **fields})
    return budgets.resolve(building.snapshot(STORED, ada, session=building.session(session)))


def defer(most: int) -> agents.Budget:
    return agents.Budget(max_tools=most, on_exceed="defer")


def test_what_fits_stays() -> None:
    found = fitted(defer(4), "first")
    assert (list(found.active), found.deferred) == (["a", "b", "x", "y"], {})
    assert (found.spent.tools, found.spent.tokens, found.spent.is_exceeded) == (4, 40, False)


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
def test_defaults_go_first_by_last_key_and_then_what_was_loaded_from_the_oldest_on(
    most: int, active: str
) -> None:
    assert list(fitted(defer(most), "first second third").active) == active.split()


@pytest.mark.parametrize(("most", "active"), [(5, "a b c d e"), (4, "a b c"), (2, "a b"), (1, "")])
def test_initial_toolkits_go_whole_from_the_last_in_order(most: int, active: str) -> None:
    assert list(fitted(defer(most), initial="third first second").active) == active.split()


def test_what_the_session_loaded_goes_after_initial_toolkits() -> None:
    assert list(fitted(defer(2), "third", initial="first second").active) == ["d", "e"]


def test_a_tool_that_a_later_load_needs_stays_where_the_earlier_load_goes() -> None:
    assert list(fitted(defer(2), "third second").active) == ["c", "d"]


def test_policy_and_off_texts_count_as_tokens() -> None:
    kit = building.toolkit("kit", "a", policy="Five words of policy text.", policy_when_off="Off.")
    stored = dataclasses.replace(
        building.catalog_of(tools("a"), toolkits=[kit]), count_tokens=lambda text: len(text.split())
    )
    on = budgets.resolve(building.snapshot(stored, building.agent(tools="a"))).spent
    assert (on.tokens, on.policy_tokens) == (18, 8)
    off = budgets.resolve(building.snapshot(stored, building.agent())).spent
    assert (off.tools, off.tokens) == (0, 4)
    most = agents.Budget(max_tokens=17, on_exceed="defer")
    found = budgets.resolve(
        building.snapshot(stored, building.agent(allowed="kit", initial="kit", budget=most))
    )
    assert (list(found.active), found.spent.tokens) == ([], 4)


def test_the_policy_is_only_counted_where_it_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []

    def count(stored: catalog.Catalog, active: Collection[str]) -> int:
        counted.append(len(active))
        return 5

    monkeypatch.setattr(policy, "tokens", count)
    stored = building.catalog_of(tools(*(f"t{number:03}" for number in range(100)), default_on=True))
    budget = agents.Budget(max_tokens=204, on_exceed="defer")
    kept = budgets.resolve(building.snapshot(stored, building.agent(budget=budget)))
    assert len(kept.active) == 19
    assert counted == [20, 19]


def test_tools_that_the_session_loaded_by_name_go_after_those_of_a_loadout() -> None:
    stored = building.catalog_of("git__a git__b calc zoo")
    ada = building.agent(budget=defer(2), loadout="developer")
    session = building.session(tools="calc zoo")
    found = budgets.resolve(building.snapshot(stored, ada, session=session))
    assert list(found.active) == ["calc", "zoo"]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"tools": "c d e"}, "always-on"),
        ({"overrides": dict.fromkeys("cde", True)}, "override-on"),
        ({"switches": {"second": True, "third": True}}, "switch-on"),
    ],
)
def test_always_on_tools_and_explicit_switches_never_go(fields: Any, code: str) -> None:
    found = fitted(defer(0), "first second third", **fields)
    assert {key: decision.code for key, decision in found.active.items()} == {"c": code, "d": code, "e": code}
    assert found.spent.is_exceeded


def test_a_sub_apps_tools_never_go() -> None:
    room = catalog.SubApp(key="room", tool_names=("a",), agents=("ada",))
    stored = building.catalog_of("a b", toolkits={"kit": "a b"}, sub_apps=[room])
    ada = building.agent(budget=defer(0), allowed="kit", initial="kit")
    assert building.active(stored, ada) == ["a"]


def test_a_tool_kept_by_name_stays_where_its_toolkit_goes() -> None:
    assert list(fitted(defer(3), "second first", tools="d").active) == ["a", "b", "d"]


def test_what_is_deferred_is_discoverable_with_the_reason_budget() -> None:
    found = fitted(defer(2), "second first")
    assert sorted(found.deferred) == ["c", "d", "x", "y"]
    assert found.decision("c") == ("c", "discoverable", "budget", 10, ("budget", "second", ""))
    assert found.decision("x") == ("x", "discoverable", "budget", 10, ("budget", "x", ""))
    assert [decision.tool for decision in found.discoverable()] == ["c", "d", "e", "x", "y"]
    assert found.has_discoverable()


def test_tokens_count_as_well_as_tools() -> None:
    found = fitted(agents.Budget(max_tokens=25, on_exceed="defer"), "first")
    assert (list(found.active), found.spent.tokens) == (["a", "b"], 20)


@pytest.mark.parametrize("on_exceed", ["warn", "refuse"])
def test_only_defer_takes_anything_away(on_exceed: Any) -> None:
    found = fitted(agents.Budget(max_tools=1, on_exceed=on_exceed), "first")
    assert (len(found.active), found.deferred, found.spent.is_exceeded) == (4, {}, True)


def test_a_default_inside_any_toolkit_goes_with_that_toolkit() -> None:
    stored = building.catalog_of(
        [building.tool("web", default_on=True), "a", "b"], toolkits={"repo": "a b", "net": "web"}
    )
    ada = building.agent(budget=defer(2), allowed="repo", initial="repo")
    assert building.active(stored, ada) == ["a", "b"]


def test_nothing_is_discoverable_where_nothing_is_offered() -> None:
    found = budgets.resolve(building.snapshot(STORED, building.agent()))
    assert not found.has_discoverable()
    assert list(found.discoverable()) == []


def test_patterns_offer_what_is_not_active_or_denied() -> None:
    ada = building.agent(loadout="minimal", overrides={"a": False}, tools="b")
    found = budgets.resolve(building.snapshot(STORED, ada))
    assert [decision.tool for decision in found.discoverable()] == ["c", "d", "e", "m__one", "x", "y"]
    assert found.has_discoverable()


def test_everything_is_decided_in_key_order() -> None:
    found = fitted(defer(2), "first")
    everything = found.all_decisions()
    assert list(everything) == sorted(STORED.tools)
    assert {key for key, decision in everything.items() if decision.state == "active"} == set(found.active)
