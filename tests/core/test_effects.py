"""Tests of effects: how a configuration change alters what the model receives."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core import building, values
from toolbelt.core import agents, catalog, effects, sessions, surface
from toolbelt.core.rules import inventory, resolution

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
    return effects.compare(*(surface.build(building.snapshot(stored, ada)) for ada in (before, after)))


def test_an_effect_counts_tools_tokens_and_policy_changes() -> None:
    difference = effect(building.agent(tools="read"), building.agent(switches={"repo": True}, tools="clock"))
    assert (difference.tools_before, difference.tools_after, difference.tools) == (1, 3, 2)
    assert (difference.tokens_before, difference.tokens_after, difference.tokens) == (10, 35, 25)
    assert (difference.added, difference.removed) == (("clock", "push"), ())
    assert difference.policy == (("repo", "on", "on"), ("clock", "none", "on"))
    assert not difference.is_nothing


def test_the_effect_of_a_denial_lists_the_removed_tools() -> None:
    difference = effect(
        building.agent(tools="read push"), building.agent(tools="read push", switches={"repo": False})
    )
    assert (difference.removed, difference.tools, difference.tokens) == (("push", "read"), -2, -30)
    assert difference.policy == (("repo", "on", "off"),)


def test_a_switch_that_does_not_change_the_surface_has_no_effect() -> None:
    silent = building.catalog_of(["read"], toolkits={"repo": "read"})
    assert effect(building.agent(), building.agent(switches={"repo": False}), silent).is_nothing


def test_a_switch_that_is_off_brings_the_off_text_to_an_agent_that_did_not_have_the_toolkit() -> None:
    difference = effect(building.agent(), building.agent(switches={"repo": False}))
    assert (difference.policy, difference.breaks) == ((("repo", "none", "off"),), ("system text",))


def test_a_denial_of_a_tool_on_request_is_an_effect_though_the_model_sees_the_same() -> None:
    stored = building.catalog_of(["read", "push"], toolkits={"repo": "read push"})
    allowed = building.agent(allowed="repo")
    lost = effect(allowed, building.agent(allowed="repo", overrides={"push": False}), stored)
    assert (lost.on_request_added, lost.on_request_removed) == ((), ("push",))
    assert (lost.added, lost.removed, lost.is_nothing) == ((), (), False)
    back = effect(building.agent(), allowed, stored)
    assert (back.on_request_added, back.on_request_removed) == (("push", "read"), ())
    # A tool that is turned on or off is not counted twice.
    on = effect(allowed, building.agent(allowed="repo", overrides={"push": True}), stored)
    assert (on.added, on.on_request_removed) == (("push",), ())


def in_a_new_session(snapshot: resolution.Snapshot, agent: agents.Agent) -> resolution.Snapshot:
    return dataclasses.replace(snapshot, agent=agent, session=sessions.NEW, request_id=None, subagent=None)


def assert_inventories_and_surfaces_agree(snapshot: resolution.Snapshot, other: agents.Agent) -> None:
    stored, kinds = snapshot.catalog, snapshot.kind_loadouts
    for before, after in ((snapshot.agent, other), (other, snapshot.agent)):
        exact = effects.compare(
            *(surface.build(in_a_new_session(snapshot, agent)) for agent in (before, after))
        )
        inventories = (inventory.take(stored, agent, kinds) for agent in (before, after))
        on_request = (
            inventory.on_request(stored, agent, kinds, now=inventory.take(stored, agent, kinds))
            for agent in (before, after)
        )
        found = effects.of_inventories(stored, *inventories, on_request=tuple(on_request))  # type: ignore[arg-type]
        assert found == exact


@given(values.snapshots(), st.data())
def test_inventories_and_surfaces_agree_on_the_effect_of_tools_config(
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
    assert_inventories_and_surfaces_agree(snapshot, changed)


@given(values.snapshots(), values.some_agents)
def test_inventories_and_surfaces_agree_on_the_effect_of_any_configuration(
    snapshot: resolution.Snapshot, other: agents.Agent
) -> None:
    assert_inventories_and_surfaces_agree(snapshot, other)
