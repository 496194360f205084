"""An index of the tools and toolkits that each agent has now, outside any session.

Read in a fixed number of queries, however many agents and tools there are; nothing here writes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from toolbelt import conf
from toolbelt.core import agents, caches, catalog, rules, sessions
from toolbelt.core.catalog import Toolkit
from toolbelt.core.rules import budgets, inventory, resolution, targets
from toolbelt.store import agents as agent_rows
from toolbelt.store import snapshots

# How many results are cached, by catalog and by state of the agent; each takes a few kilobytes and holds no catalog.
MAX_CACHED = 16_384

_Value = TypeVar("_Value")
_cache: caches.LruCache[Hashable, Any] = caches.LruCache(MAX_CACHED)


@dataclass(frozen=True, kw_only=True)
class AgentAccess:
    """One agent with a catalog. What it has, and every decision for it, is computed on demand.

    ``state`` identifies this state of the agent for the cache; None if it cannot be cached.
    """

    agent: agents.Agent
    catalog: catalog.Catalog
    state: Hashable | None = None

    @functools.cached_property
    def inventory(self) -> inventory.Inventory:
        """The agent's inventory."""
        return self._cached("inventory", lambda: inventory.take(self.catalog, self.agent, conf.KIND_LOADOUTS))

    @functools.cached_property
    def toolkits(self) -> frozenset[str]:
        """The toolkits of which it has a tool."""
        return self._cached("toolkits", lambda: inventory.toolkits(self.catalog, self.granted))

    @functools.cached_property
    def plugins(self) -> frozenset[str]:
        """The plugins of which it has a tool."""
        return self._cached("plugins", lambda: inventory.plugins(self.catalog, self.granted))

    @property
    def active(self) -> frozenset[str]:
        """Its active tools."""
        return self.inventory.active

    @property
    def granted(self) -> frozenset[str]:
        """Everything that is active: tools, prompts, resources and so on."""
        non_tools = self.inventory.non_tools
        return self.inventory.active | non_tools if non_tools else self.inventory.active

    @functools.cached_property
    def on_request(self) -> frozenset[str]:
        """What it gets on request: tools, prompts, resources and so on."""
        return self._cached(
            "on request",
            lambda: inventory.on_request(self.catalog, self.agent, conf.KIND_LOADOUTS, now=self.inventory),
        )

    @functools.cached_property
    def resolved(self) -> budgets.Resolution:
        """The resolution, with the decision for every tool."""
        return budgets.resolve(snapshots.of(self.catalog, self.agent))

    @functools.cached_property
    def context(self) -> rules.EvaluationContext:
        """The context in which its tools are decided."""
        return resolution.build_context(snapshots.of(self.catalog, self.agent))

    @property
    def may_load(self) -> bool:
        """Whether a new session gets the meta-tools, with which an agent loads tools."""
        snapshot = snapshots.of(self.catalog, self.agent, session=sessions.NEW)
        return targets.is_anything_to_change(budgets.resolve(snapshot))

    def decision(self, tool: str) -> resolution.Decision:
        """Return the decision for one tool, as people read it."""
        if tool in self.inventory.deferred:
            return self.resolved.decision(tool)
        return resolution.as_shown(self.catalog, resolution.decide(self.context, tool))

    def never_gets(self, tool: str) -> bool:
        """Return whether nothing grants or offers it a tool: not to itself, its subagents or any of its sessions.

        A tool that is only denied, unavailable or blocked at the moment is not such a tool.
        """
        if self.agent.subagent_kinds or self.agent.session_loadouts:
            return False
        return self.decision(tool).state == "dormant"

    def _cached(self, name: str, compute: Callable[[], _Value]) -> _Value:
        if self.state is None or not self.catalog.stamp:
            return compute()
        slot = (name, self.catalog.stamp, self.state, tuple(conf.KIND_LOADOUTS.items()))
        value: _Value | None = _cache.get(slot)
        if value is None:
            value = compute()
            _cache.put(slot, value)
        return value

    def decisions(self, toolkit: Toolkit) -> Mapping[str, resolution.Decision]:
        """Return the decision for each member of the toolkit, in order."""
        return {key: self.decision(key) for key in members(self.catalog, toolkit)}


@dataclass(frozen=True, kw_only=True)
class AccessIndex:
    """The catalog, and all agents that are not archived, in stored order."""

    catalog: catalog.Catalog
    agents: Sequence[AgentAccess]

    @functools.cached_property
    def users(self) -> Mapping[str, Sequence[str]]:
        """Return for each toolkit the agents that have one of its tools active, in order."""
        by_toolkit: dict[str, list[str]] = {}
        for access in self.agents:
            for key in access.toolkits:
                by_toolkit.setdefault(key, []).append(access.agent.key)
        return by_toolkit

    @functools.cached_property
    def switches(self) -> Mapping[str, Mapping[str, bool]]:
        """Return the state of each toolkit's switch, by agent."""
        by_toolkit: dict[str, dict[str, bool]] = {}
        for access in self.agents:
            for key, on in access.agent.switches.items():
                by_toolkit.setdefault(key, {})[access.agent.key] = on
        return by_toolkit


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogView:
    """The catalog, and the decision for each tool that no agent can have because it is unavailable or blocked."""

    catalog: catalog.Catalog
    closed: Mapping[str, resolution.Decision]


def load(*, archived: bool = False) -> AccessIndex:
    """Return the index of all agents that are not archived, or only of those that are."""
    return load_with_catalog(snapshots.catalog(), archived=archived)


def load_with_catalog(stored: catalog.Catalog, *, archived: bool = False) -> AccessIndex:
    """Return the index of all agents with a catalog that was just read."""
    return AccessIndex(
        catalog=stored,
        agents=tuple(
            AgentAccess(agent=agent, catalog=stored, state=state)
            for agent, state in snapshots.present(archived=archived)
        ),
    )


def load_uncached(stored: catalog.Catalog, agent: str | None = None) -> AccessIndex:
    """Return the index of all agents, or of one, with a catalog that may be a proposed one; nothing is cached."""
    if agent is None:
        loaded = [present.agent for present in snapshots.present()]
    else:
        loaded = agent_rows.present(key=agent) if agent else []
    return AccessIndex(
        catalog=stored, agents=tuple(AgentAccess(agent=value, catalog=stored) for value in loaded)
    )


def catalog_view() -> CatalogView:
    """Return the catalog without looking at agents."""
    stored = snapshots.catalog()
    return CatalogView(catalog=stored, closed=closed(stored))


@catalog.derived
def closed(stored: catalog.Catalog) -> Mapping[str, resolution.Decision]:
    """Return the decision for each tool that no agent can have, as people read it."""
    context = resolution.build_context(snapshots.of(stored, agents.Agent(key="")))
    closed_keys = rules.closed(stored, stored.tools.keys())
    return {
        key: resolution.as_shown(stored, resolution.decide(context, key))
        for key in stored.tools
        if key in closed_keys
    }


def members(stored: catalog.Catalog, toolkit: catalog.Toolkit) -> tuple[str, ...]:
    """Return the members of the toolkit that exist, in order."""
    return tuple(member.tool for member in toolkit.members if member.tool in stored.tools)
