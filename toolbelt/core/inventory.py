"""What an agent has outside any session, worked out by sets of tools instead of deciding on one tool after the other.

It says the same as :func:`toolbelt.core.budgets.resolve`, without a reason for each tool: for lists and counts over
many agents. The sets that agents share are made once for each catalog.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from toolbelt.core import agents, budgets, catalog, conflicts, keys, loadouts, resolution, sessions

_NOTHING: frozenset[str] = frozenset()
_Made = TypeVar("_Made")


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """The tools that are active and those that the budget deferred, what is spent, and a warning for each conflict."""

    active: frozenset[str]
    deferred: frozenset[str]
    spent: budgets.Spent
    conflicts: tuple[str, ...] = ()


def take(
    stored: catalog.Catalog,
    agent: agents.Agent,
    kind_loadouts: Mapping[str, str] = agents.KIND_LOADOUTS,
) -> Inventory:
    """Return what the agent has beside this catalog, outside any session."""
    shared, shared_tokens = _shared(stored, agent.loadout_name(kind_loadouts))
    # What agents share is large, and what sets this one apart is small: only that is worked out.
    shut = denied(stored, agent, kind_loadouts)
    granted = _granted(stored, agent)
    added = granted.union(_initial(stored, agent)) - closed(stored) - shut - shared
    dropped = shared & shut
    active = (shared - dropped) | added
    tokens = shared_tokens + _tokens_of(stored, added) - _tokens_of(stored, dropped)
    defers = agent.budget is not None and agent.budget.on_exceed == "defer"
    gone = budgets.going(stored, agent.budget, len(active), tokens, active - granted) if defers else {}
    if gone:
        active = active.difference(gone)
        tokens -= _tokens_of(stored, gone)
    return Inventory(
        active=active,
        deferred=frozenset(gone),
        spent=budgets.Spent(tools=len(active), tokens=tokens, budget=agent.budget),
        conflicts=tuple(_conflicts(stored, agent, active)),
    )


def closed(stored: catalog.Catalog) -> frozenset[str]:
    """Name the tools that no agent can have: those that are unavailable or blocked (questions 1 and 2)."""

    def work_out() -> frozenset[str]:
        nobody = resolution.stand(resolution.Snapshot(catalog=stored, agent=agents.Agent(key="")))
        return frozenset(key for key in stored.tools if resolution.decide(nobody, key).question <= 2)

    return _kept(stored, ("closed tools",), work_out)


def denied(
    stored: catalog.Catalog, agent: agents.Agent, kind_loadouts: Mapping[str, str] = agents.KIND_LOADOUTS
) -> frozenset[str]:
    """Name the tools that the agent's own configuration denies it (questions 3 to 5)."""
    found = {key for key, on in agent.overrides.items() if not on}
    for key, on in agent.switches.items():
        if not on:
            found |= _members(stored, key)
    loadout = agent.loadout_name(kind_loadouts)
    return frozenset(found | loadouts.tools_disabled(stored, loadout) if loadout else found)


def toolkits(stored: catalog.Catalog, active: Iterable[str]) -> frozenset[str]:
    """Name the toolkits that have one of these tools."""
    over = _kept(
        stored,
        ("toolkits over",),
        lambda: {key: tuple(kit.key for kit in kits) for key, kits in stored.toolkits_of.items()},
    )
    # Tools of one toolkit have the same few over them.
    return frozenset(key for kits in set(map(over.get, active)) if kits for key in kits)


def plugins(stored: catalog.Catalog, active: Iterable[str]) -> frozenset[str]:
    """Name the plugins that have one of these tools."""
    owners = _kept(stored, ("plugins",), lambda: {key: tool.plugin for key, tool in stored.tools.items()})
    return frozenset(map(owners.__getitem__, active)) - {""}


def _granted(stored: catalog.Catalog, agent: agents.Agent) -> frozenset[str]:
    """Name what was asked for by name (questions 6 and 7), which no budget takes away."""
    found = {tool for tool, _ in stored.bound.get(agent.key, ())}
    found.update(always.tool for always in agent.tools)
    found.update(key for key, on in agent.overrides.items() if on)
    found &= stored.tools.keys()
    return frozenset(found).union(*(_members(stored, key) for key, on in agent.switches.items() if on))


def _initial(stored: catalog.Catalog, agent: agents.Agent) -> frozenset[str]:
    """Name what comes with initial toolkits (question 8)."""
    initial = sessions.in_allowed_order((), agent.allowed_toolkits, agent.initial_toolkits)
    return _NOTHING.union(*(_members(stored, key) for key in initial))


def _shared(stored: catalog.Catalog, loadout: str) -> tuple[frozenset[str], int]:
    """Return the tools that a loadout brings, or that are on by default where there is none (question 9), without
    closed ones; and their tokens.
    """

    def work_out() -> tuple[frozenset[str], int]:
        brought = loadouts.tools_included(stored, loadout) if loadout else stored.default_on
        found = frozenset(brought) - closed(stored)
        return found, _tokens_of(stored, found)

    return _kept(stored, ("shared", keys.fold(loadout)), work_out)


def _members(stored: catalog.Catalog, key: str) -> frozenset[str]:
    toolkit = stored.toolkits.get(key)
    if toolkit is None:
        return _NOTHING
    return _kept(
        stored,
        ("members", key),
        lambda: frozenset(member.tool for member in toolkit.members if member.tool in stored.tools),
    )


def _tokens_of(stored: catalog.Catalog, tools: Iterable[str]) -> int:
    tokens = _kept(stored, ("tokens",), lambda: {key: tool.tokens for key, tool in stored.tools.items()})
    return sum(map(tokens.__getitem__, tools))


def _conflicts(stored: catalog.Catalog, agent: agents.Agent, active: frozenset[str]) -> Iterable[str]:
    for tool in sorted(conflicts.concerned(stored, agent) & active):
        conflict = conflicts.among(conflicts.sources(stored, agent, tool), tool)
        if conflict is not None:
            yield conflict.warning


def _kept(stored: catalog.Catalog, name: tuple[str, ...], work_out: Callable[[], _Made]) -> _Made:
    slot = ("inventory", *name)
    known: _Made | None = stored.derived.get(slot)
    if known is None:
        known = stored.derived[slot] = work_out()
    return known
