"""What becomes of each agent when the catalog is another one? (dashboard: Loadouts)

Only those agents are worked out that the change can reach, and of what they may load only the tools that it can
bring within reach, or take out of it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from toolbelt import conf
from toolbelt.core import (
    agents,
    budgets,
    catalog,
    effects,
    keys,
    loadouts,
    resolution,
    risks,
    surface,
)

Kind = Literal["loadout", "toolkit", "sub_app"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Consequence:
    """What becomes of one agent outside any session. ``gained`` and ``lost`` can be had on request, or no longer;
    ``destructive`` are those of the tools it gets that can destroy something. It ``spent`` so much before, and
    ``spends`` so much then.
    """

    agent: agents.Agent
    effect: effects.Effect
    gained: tuple[str, ...]
    lost: tuple[str, ...]
    destructive: tuple[str, ...]
    spent: budgets.Spent
    spends: budgets.Spent

    @property
    def is_nothing(self) -> bool:
        """Say whether the agent has, and may have, what it had before."""
        return self.effect.is_nothing and not (self.gained or self.lost)


def of(
    kind: Kind,
    name: str,
    stored: catalog.Catalog,
    proposed: catalog.Catalog,
    every: Collection[agents.Agent],
) -> tuple[Consequence, ...]:
    """Say what becomes of those agents for which something changes, where the thing of this name is the difference
    between the two catalogs.
    """
    perhaps = _perhaps(kind, name, stored, proposed)
    found = (
        _consequence(agent, stored, proposed, perhaps)
        for agent in every
        if _is_within_reach(kind, name, agent, stored, proposed)
    )
    return tuple(one for one in found if not one.is_nothing)


def _loadouts_of(stored: catalog.Catalog, agent: agents.Agent) -> tuple[str, ...]:
    """Name the loadouts that the agent has by its own or its kind's, from its own to the root."""
    own = agent.loadout_name(conf.KIND_LOADOUTS)
    return tuple(link.name for link in loadouts.chain(stored.loadouts, own)) if own else ()


def _is_within_reach(
    kind: Kind, name: str, agent: agents.Agent, stored: catalog.Catalog, proposed: catalog.Catalog
) -> bool:
    """Say whether it can make a difference to this agent, without working out what the agent has."""
    if kind == "loadout":
        folded = keys.fold(name)
        return any(
            folded == keys.fold(link) for one in (stored, proposed) for link in _loadouts_of(one, agent)
        )
    if kind == "sub_app":
        return any(
            agent.key in app.agents
            for one in (stored, proposed)
            if (app := one.sub_apps.get(name)) is not None
        )
    return True


def _perhaps(kind: Kind, name: str, stored: catalog.Catalog, proposed: catalog.Catalog) -> Collection[str]:
    """Name the tools that might come within reach on request, or go out of it; the others need no look."""
    if kind == "toolkit":
        kits = (one.toolkits[name] for one in (stored, proposed) if name in one.toolkits)
        return {member.tool for kit in kits for member in kit.members} & stored.tools.keys()
    if kind == "sub_app":
        apps = (one.sub_apps[name] for one in (stored, proposed) if name in one.sub_apps)
        return {tool for app in apps for tool in app.tool_names} & stored.tools.keys()
    found: set[str] = set()
    for other in loadouts.all_names(proposed):
        if keys.fold(name) in {
            keys.fold(link.name) for one in (stored, proposed) for link in loadouts.chain(one.loadouts, other)
        }:
            for tools in (loadouts.tools_included, loadouts.tools_discoverable):
                found |= set(tools(stored, other)) ^ set(tools(proposed, other))
            views = [loadouts.view_in(one, other) for one in (stored, proposed)]
            if views[0].disabled != views[1].disabled:
                found |= {
                    tool.key
                    for tool in stored.tools.values()
                    if views[0].disables(tool.key, tool.plugin) != views[1].disables(tool.key, tool.plugin)
                }
    return found


def _consequence(
    agent: agents.Agent, stored: catalog.Catalog, proposed: catalog.Catalog, perhaps: Collection[str]
) -> Consequence:
    before, after = (
        surface.build(resolution.Snapshot(catalog=one, agent=agent, kind_loadouts=conf.KIND_LOADOUTS))
        for one in (stored, proposed)
    )
    had, has = (
        {key for key in perhaps if one.resolution.decision(key).state == "discoverable"}
        for one in (before, after)
    )
    effect = effects.compare(before, after)
    return Consequence(
        agent=agent,
        effect=effect,
        gained=tuple(sorted(has - had)),
        lost=tuple(sorted(had - has)),
        destructive=tuple(key for key in effect.added if risks.of(proposed.tools[key]) == "destructive"),
        spent=before.spent,
        spends=after.spent,
    )
