"""What a change does to what the model sees."""

from __future__ import annotations

from tests.core import building
from toolbelt.core import agents, catalog, effects, surface

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
