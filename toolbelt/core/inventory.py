"""Inventories: what an agent has outside any session, computed with sets of tools instead of tool by tool.

The result is that of :func:`toolbelt.core.budgets.resolve` without a reason for each tool, for lists and counts over
many agents. Sets that agents share are computed once per catalog.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from toolbelt.core import agents, budgets, catalog, conflicts, keys, loadouts, resolution, schema, sessions

_NOTHING: frozenset[str] = frozenset()
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """The active and deferred tools, the budget's use, and a warning for each conflict.

    ``non_tools`` are the active prompts, resources and so on, ``loadable`` the toolkits that a new session can load,
    ``concerned`` those whose off texts the agent gets while they are off.
    """

    active: frozenset[str]
    deferred: frozenset[str]
    spent: budgets.Spent
    conflicts: tuple[str, ...] = ()
    non_tools: frozenset[str] = _NOTHING
    loadable: tuple[str, ...] = ()
    concerned: frozenset[str] = _NOTHING


def take(
    stored: catalog.Catalog,
    agent: agents.Agent,
    kind_loadouts: Mapping[str, str] = agents.KIND_LOADOUTS,
    *,
    before: Inventory | None = None,
) -> Inventory:
    """Return the agent's tools with this catalog, outside any session.

    With ``before``, an inventory with the same catalog, only the differences from it are counted.
    """
    loadout = agent.loadout_name(kind_loadouts)
    shared = _shared(stored, loadout)
    concerned = resolution.toolkits_that_concern(stored, agent, loadout or None)
    # The tools that agents share are many, and those of a single agent few: only the latter are computed here.
    denied_tools = denied(stored, agent, kind_loadouts)
    granted = _granted(stored, agent)
    added = granted.union(_initial(stored, agent)) - closed(stored) - denied_tools - shared
    dropped = shared & denied_tools
    active = (shared - dropped) | added
    non_tools = active & stored.non_tools
    active -= non_tools
    initial = budgets.initial_toolkits(stored, _initial_toolkits(agent))
    deferred = budgets.deferred_tools(stored, agent.budget, active, granted, concerned, initial)
    active = active.difference(deferred)
    if before is None:
        spent = budgets.spend(stored, active, concerned, agent.budget)
    else:
        spent = budgets.spend_after(
            stored, before.spent, before.active, active, before.concerned, concerned, agent.budget
        )
    return Inventory(
        active=active,
        deferred=frozenset(deferred),
        spent=spent,
        conflicts=tuple(_conflicts(stored, agent, active)),
        non_tools=non_tools,
        loadable=tuple(_loadable(stored, agent, active, granted & active, denied_tools, concerned)),
        concerned=concerned,
    )


def on_request(
    stored: catalog.Catalog,
    agent: agents.Agent,
    kind_loadouts: Mapping[str, str] = agents.KIND_LOADOUTS,
    *,
    now: Inventory,
) -> frozenset[str]:
    """Return the tools that the agent gets on request, with its inventory ``now``: those that it may load, those that
    its loadout's patterns match (rule 10), and those that its budget defers.
    """
    initial = _initial_toolkits(agent)
    loadable = [key for key in agent.allowed_toolkits if key not in initial]
    offered = _offered(stored, loadable, agent.loadout_name(kind_loadouts)) - now.active - now.non_tools
    return (offered - closed(stored) - denied(stored, agent, kind_loadouts)) | now.deferred


def requestable(resolved: budgets.Resolution) -> frozenset[str]:
    """Return what :func:`on_request` returns, from a resolution in a session or for a subagent."""
    context = resolved.context
    offered = _offered(context.catalog, context.loadable, context.loadout_name)
    offered -= resolved.active.keys() | resolved.non_tools.keys()
    return (offered - closed(context.catalog) - resolution.denied(context)) | resolved.deferred.keys()


def _offered(stored: catalog.Catalog, toolkits_: Iterable[str], loadout: str) -> frozenset[str]:
    """Return the members of these toolkits, and what the loadout's patterns match."""
    matched = _NOTHING
    if loadout:
        matched = _cached(
            stored,
            ("matched", keys.fold(loadout)),
            lambda: frozenset(loadouts.tools_discoverable(stored, loadout)),
        )
    return matched.union(*(_members(stored, key) for key in toolkits_))


def closed(stored: catalog.Catalog) -> frozenset[str]:
    """Return the tools that no agent can have: unavailable or blocked (rules 1 and 2)."""

    def compute() -> frozenset[str]:
        context = resolution.build_context(resolution.Snapshot(catalog=stored, agent=agents.Agent(key="")))
        return frozenset(key for key in stored.tools if resolution.decide(context, key).rule_number <= 2)

    return _cached(stored, ("closed tools",), compute)


def denied(
    stored: catalog.Catalog, agent: agents.Agent, kind_loadouts: Mapping[str, str] = agents.KIND_LOADOUTS
) -> frozenset[str]:
    """Return the tools that the agent's own configuration denies (rules 3 to 5)."""
    result = {key for key, on in agent.overrides.items() if not on}
    for key, on in agent.switches.items():
        if not on:
            result |= _members(stored, key)
    loadout = agent.loadout_name(kind_loadouts)
    return frozenset(result | loadouts.tools_disabled(stored, loadout) if loadout else result)


def toolkits(stored: catalog.Catalog, active: Iterable[str]) -> frozenset[str]:
    """Return the toolkits that have one of these tools."""
    kits_of = _cached(
        stored,
        ("toolkits over",),
        lambda: {key: tuple(kit.key for kit in kits) for key, kits in stored.toolkits_of.items()},
    )
    # Tools of one toolkit share their toolkits, so the set is small.
    return frozenset(key for kits in set(map(kits_of.get, active)) if kits for key in kits)


def plugins(stored: catalog.Catalog, active: Iterable[str]) -> frozenset[str]:
    """Return the plugins that have one of these tools."""
    owners = _cached(stored, ("plugins",), lambda: {key: tool.plugin for key, tool in stored.tools.items()})
    return frozenset(map(owners.__getitem__, active)) - {""}


def _granted(stored: catalog.Catalog, agent: agents.Agent) -> frozenset[str]:
    """Return the tools that an operator granted by name (rules 6 and 7), which no budget removes."""
    granted = {tool for tool, _ in stored.bound.get(agent.key, ())}
    granted.update(always.tool for always in agent.tools)
    granted.update(key for key, on in agent.overrides.items() if on)
    granted &= stored.tools.keys()
    return frozenset(granted).union(*(_members(stored, key) for key, on in agent.switches.items() if on))


def _initial(stored: catalog.Catalog, agent: agents.Agent) -> frozenset[str]:
    """Return the members of initial toolkits (rule 8)."""
    return _NOTHING.union(*(_members(stored, key) for key in _initial_toolkits(agent)))


def _initial_toolkits(agent: agents.Agent) -> tuple[str, ...]:
    return sessions.in_allowed_order((), agent.allowed_toolkits, agent.initial_toolkits)


def _loadable(
    stored: catalog.Catalog,
    agent: agents.Agent,
    active: frozenset[str],
    fixed: frozenset[str],
    denied_tools: frozenset[str],
    concerned: frozenset[str],
) -> Iterable[str]:
    """Yield what :func:`toolbelt.core.targets.loadable` yields in a session that has loaded nothing."""
    initial = _initial_toolkits(agent)
    with_options = conflicts.tools_with_options(stored, agent)
    for key in agent.allowed_toolkits:
        toolkit = stored.toolkits.get(key)
        if toolkit is None or key in initial or toolkit.blocked or agent.switches.get(key) is False:
            continue
        added = _members(stored, key) - closed(stored) - denied_tools
        if not added or not budgets.fits(
            stored, agent.budget, active, fixed, added - stored.non_tools, concerned
        ):
            continue
        if not any(_conflicts_with(stored, agent, toolkit, tool) for tool in added & with_options):
            yield key


def _conflicts_with(
    stored: catalog.Catalog, agent: agents.Agent, toolkit: catalog.Toolkit, tool: str
) -> bool:
    """Return whether loading the toolkit would pass the tool other options than its first source does."""
    first = next(conflicts.sources(stored, agent, tool), None)
    return first is not None and not schema.same(conflicts.options_of(toolkit, tool), first.options)


def _shared(stored: catalog.Catalog, loadout: str) -> frozenset[str]:
    """Return the tools of a loadout, or those that are on by default without one (rule 9), without closed ones."""

    def compute() -> frozenset[str]:
        included = loadouts.tools_included(stored, loadout) if loadout else stored.default_on
        return frozenset(included) - closed(stored)

    return _cached(stored, ("shared", keys.fold(loadout)), compute)


def _members(stored: catalog.Catalog, key: str) -> frozenset[str]:
    toolkit = stored.toolkits.get(key)
    if toolkit is None:
        return _NOTHING
    return _cached(
        stored,
        ("members", key),
        lambda: frozenset(member.tool for member in toolkit.members if member.tool in stored.tools),
    )


def _conflicts(stored: catalog.Catalog, agent: agents.Agent, active: frozenset[str]) -> Iterable[str]:
    for tool in sorted(conflicts.tools_with_options(stored, agent) & active):
        conflict = conflicts.first_conflict(conflicts.sources(stored, agent, tool), tool)
        if conflict is not None:
            yield conflict.warning


def _cached(stored: catalog.Catalog, name: tuple[str, ...], compute: Callable[[], _Value]) -> _Value:
    slot = ("inventory", *name)
    value: _Value | None = stored.derived.get(slot)
    if value is None:
        value = stored.derived[slot] = compute()
    return value
