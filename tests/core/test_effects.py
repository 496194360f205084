"""What a change does to what the model sees."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core import building, values
from toolbelt.core import agents, catalog, effects, inventory, resolution, surface

pytestmark = pytest.mark.slow

STORED = building.catalog_of(
    [
        building.tool("read", tokens=10),
        building.tool("push", tokens=20),
        building.tool("clock", tokens=5, policy="Zone."),
    ],
    toolkits=[building.toolkit("repo", "read push", policy="{active_tools}", policy_when_off="None.")],
)


def effect(before: agents.Agent, after: agents.Agent, stored: catalog.Catalog = STORED) -> effects.Effect:
    one, other = (surface.build(building.snapshot(stored, ada)) for ada in (before, after))
    return effects.compare(one, other)


def test_a_flip_is_told_in_tools_tokens_and_policy() -> None:
    found = effect(building.agent(tools="read"), building.agent(switches={"repo": True}, tools="clock"))
    assert (found.tools_before, found.tools_after, found.tools) == (1, 3, 2)
    assert (found.tokens_before, found.tokens_after, found.tokens) == (10, 35, 25)
    assert (found.added, found.removed) == (("clock", "push"), ())
    assert found.policy == (("repo", "on", "on"), ("clock", "none", "on"))
    assert not found.is_nothing


def test_a_denial_is_told_by_what_it_takes_away() -> None:
    found = effect(
        building.agent(tools="read push"), building.agent(tools="read push", switches={"repo": False})
    )
    assert (found.removed, found.tools, found.tokens) == (("push", "read"), -2, -30)
    assert found.policy == (("repo", "on", "off"),)


def test_a_flip_that_leaves_the_surface_as_it_was_is_nothing() -> None:
    assert effect(building.agent(), building.agent(switches={"repo": False})).is_nothing


def outside(snapshot: resolution.Snapshot, agent: agents.Agent) -> resolution.Snapshot:
    return dataclasses.replace(snapshot, agent=agent, session=None, request_id=None, subagent=None)


def assert_inventories_say_what_surfaces_say(snapshot: resolution.Snapshot, other: agents.Agent) -> None:
    stored, kinds = snapshot.catalog, snapshot.kind_loadouts
    for before, after in ((snapshot.agent, other), (other, snapshot.agent)):
        exact = effects.compare(*(surface.build(outside(snapshot, agent)) for agent in (before, after)))
        inventories = (inventory.take(stored, agent, kinds) for agent in (before, after))
        assert effects.of_inventories(stored, *inventories) == exact


@given(values.snapshots(), st.data())
def test_inventories_give_the_effect_of_switches_and_overrides_that_surfaces_give(
    snapshot: resolution.Snapshot, data: st.DataObject
) -> None:
    agent = snapshot.agent
    states = st.sampled_from((True, False, None))
    switches, overrides = dict(agent.switches), dict(agent.overrides)
    for key in data.draw(values.some_of(*values.KITS, *values.TOOLS)):
        configured = switches if key in values.KITS else overrides
        configured.pop(key, None)
        on = data.draw(states)
        if on is not None:
            configured[key] = on
    changed = dataclasses.replace(agent, switches=switches, overrides=overrides)
    assert_inventories_say_what_surfaces_say(snapshot, changed)


@given(values.snapshots(), values.some_agents)
def test_inventories_give_the_effect_of_any_other_configuration_that_surfaces_give(
    snapshot: resolution.Snapshot, other: agents.Agent
) -> None:
    assert_inventories_say_what_surfaces_say(snapshot, other)
