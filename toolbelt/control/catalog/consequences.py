"""The consequences of a changed catalog for each agent.

Only agents that the change can affect are resolved, and of what they may load, only the tools that it can add or
remove.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from toolbelt import conf
from toolbelt.core import agents, catalog, effects, keys, loadouts, risks, sessions, surface
from toolbelt.core.rules import budgets
from toolbelt.store import snapshots

Kind = Literal["loadout", "toolkit", "sub_app", "gate_rule"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Consequence:
    """The consequences for one agent in a new session. ``gained`` and ``lost`` are tools that it may load now, or no
    longer; ``destructive`` are its new destructive tools. ``spent_before`` and ``spent_after`` are its use of the
    budget.
    """

    agent: agents.Agent
    effect: effects.Effect
    gained: tuple[str, ...]
    lost: tuple[str, ...]
    destructive: tuple[str, ...]
    spent_before: budgets.Spent
    spent_after: budgets.Spent

    @property
    def exceeds_budget(self) -> bool:
        """Return whether the change takes the agent over its budget, or further over it."""
        return budgets.is_worsened(self.spent_before, self.spent_after)

    @property
    def is_nothing(self) -> bool:
        """Return whether the agent has, and may load, the same as before."""
        return self.effect.is_nothing and not (self.gained or self.lost)


def of(
    kind: Kind,
    name: str,
    stored: catalog.Catalog,
    proposed: catalog.Catalog,
    all_agents: Collection[agents.Agent],
) -> tuple[Consequence, ...]:
    """Return the consequences for each agent that they concern, where the thing with this name is the difference
    between the two catalogs.
    """
    if kind == "gate_rule":
        # It is about calls, and not about what agents have.
        return ()
    candidates = _loadable_candidates(kind, name, stored, proposed)
    all_consequences = (
        _consequence(agent, stored, proposed, candidates)
        for agent in all_agents
        if _is_within_reach(kind, name, agent, stored, proposed)
    )
    return tuple(consequence for consequence in all_consequences if not consequence.is_nothing)


def _loadouts_of(stored: catalog.Catalog, agent: agents.Agent) -> tuple[str, ...]:
    """Return the loadouts of the agent or its kind, from its own to the root."""
    name = agent.loadout_name(conf.KIND_LOADOUTS)
    return tuple(link.name for link in loadouts.chain(stored.loadouts, name)) if name else ()


def _is_within_reach(
    kind: Kind, name: str, agent: agents.Agent, stored: catalog.Catalog, proposed: catalog.Catalog
) -> bool:
    """Return whether the change can affect this agent, without resolving the agent."""
    if kind == "loadout":
        folded = keys.fold(name)
        return any(
            folded == keys.fold(link)
            for version in (stored, proposed)
            for link in _loadouts_of(version, agent)
        )
    if kind == "sub_app":
        return any(
            agent.key in app.agents
            for version in (stored, proposed)
            if (app := version.sub_apps.get(name)) is not None
        )
    return True


def _loadable_candidates(
    kind: Kind, name: str, stored: catalog.Catalog, proposed: catalog.Catalog
) -> Collection[str]:
    """Return the tools that may become loadable or stop being so."""
    if kind == "toolkit":
        kits = (version.toolkits[name] for version in (stored, proposed) if name in version.toolkits)
        return {member.tool for kit in kits for member in kit.members} & stored.tools.keys()
    if kind == "sub_app":
        apps = (version.sub_apps[name] for version in (stored, proposed) if name in version.sub_apps)
        return {tool for app in apps for tool in app.tool_names} & stored.tools.keys()
    tools_: set[str] = set()
    for other in loadouts.all_names(proposed):
        if keys.fold(name) in {
            keys.fold(link.name)
            for version in (stored, proposed)
            for link in loadouts.chain(version.loadouts, other)
        }:
            for tools in (loadouts.tools_included, loadouts.tools_discoverable, loadouts.tools_denied):
                tools_ |= set(tools(stored, other)) ^ set(tools(proposed, other))
    return tools_


def _consequence(
    agent: agents.Agent, stored: catalog.Catalog, proposed: catalog.Catalog, candidates: Collection[str]
) -> Consequence:
    before, after = (
        surface.build(snapshots.of(side, agent, session=sessions.NEW)) for side in (stored, proposed)
    )
    loadable_before, loadable_after = (
        {key for key in candidates if side.resolution.decision(key).state == "discoverable"}
        for side in (before, after)
    )
    # What is on request is listed as gained and lost, with what was on before.
    effect = dataclasses.replace(effects.compare(before, after), on_request_added=(), on_request_removed=())
    return Consequence(
        agent=agent,
        effect=effect,
        gained=tuple(sorted(loadable_after - loadable_before)),
        lost=tuple(sorted(loadable_before - loadable_after)),
        destructive=tuple(key for key in effect.added if risks.of(proposed.tools[key]) == "destructive"),
        spent_before=before.spent,
        spent_after=after.spent,
    )
