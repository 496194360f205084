"""Tests that an inventory equals the result of resolving, for any configuration."""

from __future__ import annotations

import dataclasses
import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core import values
from toolbelt.core import agents, catalog, loadouts, risks, rules, sessions, surface
from toolbelt.core.rules import budgets, inventory, resolution, targets

pytestmark = pytest.mark.slow

NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)


def resolved(snapshot: resolution.Snapshot) -> inventory.Inventory:
    answer = surface.build(snapshot)
    return inventory.Inventory(
        active=frozenset(answer.because),
        deferred=frozenset(answer.resolution.deferred),
        spent=answer.spent,
        conflicts=tuple(warning.message for warning in answer.warnings if warning.code == "options-conflict"),
        loadable=tuple(targets.loadable(answer.resolution)),
        concerned=answer.resolution.context.concerned,
    )


@given(values.snapshots())
def test_an_inventory_equals_the_resolution_of_a_new_session(snapshot: resolution.Snapshot) -> None:
    outside = dataclasses.replace(snapshot, session=sessions.NEW, request_id=None, subagent=None)
    counted = inventory.take(outside.catalog, outside.agent, outside.kind_loadouts)
    assert counted == resolved(outside)
    active = {key for key, toolkits in outside.catalog.toolkits_of.items() if key in counted.active}
    assert inventory.toolkits(outside.catalog, counted.active) == {
        toolkit.key for key in active for toolkit in outside.catalog.toolkits_of[key]
    }
    assert inventory.plugins(outside.catalog, counted.active) == {
        plugin for key in counted.active if (plugin := outside.catalog.tools[key].plugin)
    }


@given(values.snapshots(), st.sampled_from((None, 0, 1, 3)))
def test_the_tools_on_request_are_those_that_a_resolution_decides_as_discoverable(
    snapshot: resolution.Snapshot, max_tools: int | None
) -> None:
    budget = agents.Budget(max_tools=max_tools, on_exceed="defer")
    agent = dataclasses.replace(snapshot.agent, budget=budget)
    outside = dataclasses.replace(snapshot, agent=agent, session=sessions.NEW, request_id=None, subagent=None)
    counted = inventory.take(outside.catalog, agent, outside.kind_loadouts)
    decided = budgets.resolve(outside)
    assert inventory.on_request(outside.catalog, agent, outside.kind_loadouts, now=counted) == {
        key for key in outside.catalog.tools if decided.decision(key).state == "discoverable"
    }


@given(values.snapshots())
def test_an_incremental_inventory_equals_a_full_one(
    snapshot: resolution.Snapshot,
) -> None:
    stored = dataclasses.replace(snapshot.catalog, count_tokens=len, derived={})
    empty = inventory.take(stored, agents.Agent(key="empty"), snapshot.kind_loadouts)
    whole = inventory.take(stored, snapshot.agent, snapshot.kind_loadouts)
    assert inventory.take(stored, snapshot.agent, snapshot.kind_loadouts, before=empty) == whole
    back = inventory.take(stored, agents.Agent(key="empty"), snapshot.kind_loadouts, before=whole)
    assert back == empty


@given(values.snapshots(), st.data())
def test_an_inventory_follows_grants_that_expire(snapshot: resolution.Snapshot, data: st.DataObject) -> None:
    ada = snapshot.agent
    ends = {
        key: agents.End(
            at=NOON + dt.timedelta(hours=data.draw(st.integers(-2, 2))),
            then=data.draw(st.sampled_from((True, False, None))),
        )
        for key in (*ada.switches, *ada.overrides)
        if data.draw(st.booleans())
    }
    ending = dataclasses.replace(ada, ends=ends)
    for hours in (-3, 0, 1, 3):
        context = ending.as_of(NOON + dt.timedelta(hours=hours))
        now = dataclasses.replace(
            snapshot, agent=context, session=sessions.NEW, request_id=None, subagent=None
        )
        assert inventory.take(now.catalog, context, now.kind_loadouts) == resolved(now)


@given(values.snapshots())
def test_closed_and_denied_tools_are_those_that_rules_1_to_5_decide(
    snapshot: resolution.Snapshot,
) -> None:
    outside = dataclasses.replace(snapshot, session=sessions.NEW, request_id=None, subagent=None)
    stored = outside.catalog
    context = resolution.build_context(outside)
    decided = {key: resolution.decide(context, key) for key in stored.tools}
    closed = rules.closed(stored, stored.tools.keys())
    assert closed == {key for key, decision in decided.items() if decision.rule_number <= 2}
    assert (context.denied & stored.tools.keys()) - closed == {
        key for key, decision in decided.items() if 3 <= decision.rule_number <= 5
    }


@given(values.snapshots())
def test_an_inventory_and_a_resolution_defer_the_same_tools(snapshot: resolution.Snapshot) -> None:
    for most in (0, 1, 3):
        budget = agents.Budget(max_tools=most, on_exceed="defer")
        agent = dataclasses.replace(snapshot.agent, budget=budget)
        now = dataclasses.replace(snapshot, agent=agent, session=sessions.NEW, request_id=None, subagent=None)
        counted = inventory.take(now.catalog, agent, now.kind_loadouts)
        assert counted.deferred == budgets.resolve(now).deferred.keys()
        assert counted == resolved(now)
        without = inventory.take(now.catalog, snapshot.agent, now.kind_loadouts)
        assert counted == inventory.take(now.catalog, agent, now.kind_loadouts, before=without)


@given(values.snapshots())
def test_a_loadouts_denied_and_discoverable_tools_match_its_view(
    snapshot: resolution.Snapshot,
) -> None:
    stored = snapshot.catalog
    for name in (*loadouts.all_names(stored), "unknown"):
        seen = loadouts.view_in(stored, name)
        risky = set().union(
            *[risks.tools_with(stored, risk) for risk in catalog.DENIED_RISKS if risk in seen.denied_risks]
        )
        assert loadouts.tools_denied(stored, name) == {
            tool.key
            for tool in stored.tools.values()
            if tool.key in risky or seen.disables(tool.key, tool.plugin)
        }
        assert loadouts.tools_discoverable(stored, name) == tuple(
            tool.key
            for tool in stored.tools.values()
            if seen.discovers(tool.key) or seen.discovers(tool.plugin)
        )
