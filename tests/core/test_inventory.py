"""An inventory equals the result of resolving, for any configuration."""

from __future__ import annotations

import dataclasses
import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core import values
from toolbelt.core import agents, budgets, inventory, loadouts, resolution, surface, targets

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
    )


@given(values.snapshots())
def test_an_inventory_is_what_a_resolution_outside_any_session_has(snapshot: resolution.Snapshot) -> None:
    outside = dataclasses.replace(snapshot, session=None, request_id=None, subagent=None)
    taken = inventory.take(outside.catalog, outside.agent, outside.kind_loadouts)
    assert taken == resolved(outside)
    active = {key for key, toolkits in outside.catalog.toolkits_of.items() if key in taken.active}
    assert inventory.toolkits(outside.catalog, taken.active) == {
        toolkit.key for key in active for toolkit in outside.catalog.toolkits_of[key]
    }
    assert inventory.plugins(outside.catalog, taken.active) == {
        plugin for key in taken.active if (plugin := outside.catalog.tools[key].plugin)
    }


@given(values.snapshots())
def test_counting_only_what_differs_from_another_inventory_has_the_same_result(
    snapshot: resolution.Snapshot,
) -> None:
    stored = dataclasses.replace(snapshot.catalog, count_tokens=len, derived={})
    nobody = inventory.take(stored, agents.Agent(key="nobody"), snapshot.kind_loadouts)
    whole = inventory.take(stored, snapshot.agent, snapshot.kind_loadouts)
    assert inventory.take(stored, snapshot.agent, snapshot.kind_loadouts, before=nobody) == whole
    back = inventory.take(stored, agents.Agent(key="nobody"), snapshot.kind_loadouts, before=whole)
    assert back == nobody


@given(values.snapshots(), st.data())
def test_it_follows_grants_that_end(snapshot: resolution.Snapshot, data: st.DataObject) -> None:
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
        now = dataclasses.replace(snapshot, agent=context, session=None, request_id=None, subagent=None)
        assert inventory.take(now.catalog, context, now.kind_loadouts) == resolved(now)


@given(values.snapshots())
def test_what_is_closed_or_denied_is_what_the_first_five_questions_answer(
    snapshot: resolution.Snapshot,
) -> None:
    outside = dataclasses.replace(snapshot, session=None, request_id=None, subagent=None)
    stored = outside.catalog
    context = resolution.build_context(outside)
    decided = {key: resolution.decide(context, key) for key in stored.tools}
    closed = inventory.closed(stored)
    assert closed == {key for key, decision in decided.items() if decision.question <= 2}
    denied = inventory.denied(stored, outside.agent, outside.kind_loadouts)
    assert (denied & stored.tools.keys()) - closed == {
        key for key, decision in decided.items() if 3 <= decision.question <= 5
    }


@given(values.snapshots())
def test_a_budget_that_defers_takes_the_same_away(snapshot: resolution.Snapshot) -> None:
    for most in (0, 1, 3):
        budget = agents.Budget(max_tools=most, on_exceed="defer")
        agent = dataclasses.replace(snapshot.agent, budget=budget)
        now = dataclasses.replace(snapshot, agent=agent, session=None, request_id=None, subagent=None)
        taken = inventory.take(now.catalog, agent, now.kind_loadouts)
        assert taken.deferred == budgets.resolve(now).deferred.keys()
        assert taken == resolved(now)
        without = inventory.take(now.catalog, snapshot.agent, now.kind_loadouts)
        assert taken == inventory.take(now.catalog, agent, now.kind_loadouts, before=without)


@given(values.snapshots())
def test_what_a_loadout_denies_and_lets_be_discovered_is_found_by_name(
    snapshot: resolution.Snapshot,
) -> None:
    stored = snapshot.catalog
    for name in (*loadouts.all_names(stored), "nobody's"):
        seen = loadouts.view_in(stored, name)
        assert loadouts.tools_disabled(stored, name) == {
            tool.key for tool in stored.tools.values() if seen.disables(tool.key, tool.plugin)
        }
        assert loadouts.tools_discoverable(stored, name) == tuple(
            tool.key
            for tool in stored.tools.values()
            if seen.discovers(tool.key) or seen.discovers(tool.plugin)
        )
