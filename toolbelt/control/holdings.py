"""Which agents have which tools and toolkits now? Asked from the tool's side, for all agents at once.

Read in a fixed number of queries, however many agents and tools there are; nothing here writes. It is what a request
outside any session would have.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from toolbelt import conf
from toolbelt.core import agents, budgets, catalog, inventory, questions, resolution, surface
from toolbelt.core.catalog import Toolkit
from toolbelt.store import agents as agent_rows
from toolbelt.store import caches, snapshots

# What is kept of agents, by catalog and by state of the agent; each takes some kilobytes, and holds no catalog.
MOST_KEPT = 16_384

_Made = TypeVar("_Made")
_known: caches.Recent[Hashable, Any] = caches.Recent(MOST_KEPT)


@dataclass(frozen=True, kw_only=True)
class Holder:
    """One agent beside a catalog. What it has, and what is decided for it, is worked out when somebody asks.

    ``state`` names this state of the agent, if it has a name.
    """

    agent: agents.Agent
    catalog: catalog.Catalog
    state: Hashable | None = None

    @functools.cached_property
    def inventory(self) -> inventory.Inventory:
        """What it has."""
        return self._kept("inventory", lambda: inventory.take(self.catalog, self.agent, conf.KIND_LOADOUTS))

    @functools.cached_property
    def toolkits(self) -> frozenset[str]:
        """The toolkits that it has a tool of."""
        return self._kept("toolkits", lambda: inventory.toolkits(self.catalog, self.active))

    @functools.cached_property
    def plugins(self) -> frozenset[str]:
        """The plugins that it has a tool of."""
        return self._kept("plugins", lambda: inventory.plugins(self.catalog, self.active))

    @property
    def active(self) -> frozenset[str]:
        """The tools that are active."""
        return self.inventory.active

    @functools.cached_property
    def resolved(self) -> budgets.Resolution:
        """Everything that is decided for it."""
        return budgets.resolve(_snapshot(self.catalog, self.agent))

    @functools.cached_property
    def standing(self) -> questions.Standing:
        """What decides for each of its tools."""
        return resolution.stand(_snapshot(self.catalog, self.agent))

    @property
    def may_load(self) -> bool:
        """Whether it gets the tools by which an agent loads others."""
        return surface.may_load(self.resolved)

    def decision(self, tool: str) -> resolution.Decision:
        """Decide for one tool."""
        if tool in self.inventory.deferred:
            return self.resolved.decision(tool)
        return resolution.decide(self.standing, tool)

    def _kept(self, what: str, work_out: Callable[[], _Made]) -> _Made:
        if self.state is None or not self.catalog.stamp:
            return work_out()
        slot = (what, self.catalog.stamp, self.state, tuple(conf.KIND_LOADOUTS.items()))
        known: _Made | None = _known.get(slot)
        if known is None:
            known = work_out()
            _known.put(slot, known)
        return known

    def decisions(self, toolkit: Toolkit) -> Mapping[str, resolution.Decision]:
        """Decide for the members of the toolkit, in their order."""
        return {key: self.decision(key) for key in members(self.catalog, toolkit)}


@dataclass(frozen=True, kw_only=True)
class Holdings:
    """The catalog, and all agents that are not archived, in stored order."""

    catalog: catalog.Catalog
    holders: Sequence[Holder]

    @functools.cached_property
    def users(self) -> Mapping[str, Sequence[str]]:
        """Name for each toolkit the agents that have one of its tools active, in order."""
        found: dict[str, list[str]] = {}
        for holder in self.holders:
            for key in holder.toolkits:
                found.setdefault(key, []).append(holder.agent.key)
        return found

    @functools.cached_property
    def switches(self) -> Mapping[str, Mapping[str, bool]]:
        """Return for each toolkit how its switch is set, by agent."""
        found: dict[str, dict[str, bool]] = {}
        for holder in self.holders:
            for key, on in holder.agent.switches.items():
                found.setdefault(key, {})[holder.agent.key] = on
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """The catalog alone, and the decision for each tool that no agent can have: it is unavailable, or stopped."""

    catalog: catalog.Catalog
    closed: Mapping[str, resolution.Decision]


def every(*, archived: bool = False) -> Holdings:
    """Look at all agents that are not archived, or else at those that are."""
    return of_now(snapshots.catalog(), archived=archived)


def of_now(stored: catalog.Catalog, *, archived: bool = False) -> Holdings:
    """Look at all agents beside the catalog as it was just read."""
    return Holdings(
        catalog=stored,
        holders=tuple(
            Holder(agent=agent, catalog=stored, state=state)
            for agent, state in snapshots.present(archived=archived)
        ),
    )


def of(stored: catalog.Catalog, agent: str | None = None) -> Holdings:
    """Look at all agents that are not archived, or at one of them, beside this catalog, which may be one that is only
    thought of.
    """
    if agent is None:
        there = [one.agent for one in snapshots.present()]
    else:
        there = agent_rows.present(key=agent) if agent else []
    return Holdings(catalog=stored, holders=tuple(Holder(agent=one, catalog=stored) for one in there))


def shelf() -> Shelf:
    """Look at the catalog, whoever has what."""
    stored = snapshots.catalog()
    return Shelf(catalog=stored, closed=closed(stored))


def closed(stored: catalog.Catalog) -> Mapping[str, resolution.Decision]:
    """Return the decision for each tool that no agent can have, by the catalog alone; kept with the catalog."""
    known: Mapping[str, resolution.Decision] | None = stored.derived.get("closed by the catalog")
    if known is None:
        nobody = resolution.stand(_snapshot(stored, agents.Agent(key="")))
        shut = inventory.closed(stored)
        known = {key: resolution.decide(nobody, key) for key in stored.tools if key in shut}
        stored.derived["closed by the catalog"] = known
    return known


def members(stored: catalog.Catalog, toolkit: catalog.Toolkit) -> tuple[str, ...]:
    """Name the members of the toolkit that exist, in their order."""
    return tuple(member.tool for member in toolkit.members if member.tool in stored.tools)


def _snapshot(stored: catalog.Catalog, agent: agents.Agent) -> resolution.Snapshot:
    return resolution.Snapshot(catalog=stored, agent=agent, kind_loadouts=conf.KIND_LOADOUTS)
