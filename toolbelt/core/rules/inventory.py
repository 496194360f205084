"""Inventories: what an agent has outside any session, as sets of tools, for lists and counts over many agents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from toolbelt.core import agents, catalog, sessions
from toolbelt.core.rules import budgets, resolution, targets


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
    non_tools: frozenset[str] = frozenset()
    loadable: tuple[str, ...] = ()
    concerned: frozenset[str] = frozenset()


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
    resolved = budgets.resolve(_snapshot(stored, agent, kind_loadouts))
    concerned = resolved.context.concerned
    if before is None:
        spent = resolved.spent
    else:
        spent = budgets.spend_after(
            stored, before.spent, before.active, resolved.tools, before.concerned, concerned, agent.budget
        )
    found = resolution.conflicts_in(resolved.context, resolved.tools)
    return Inventory(
        active=resolved.tools,
        deferred=frozenset(resolved.removed),
        spent=spent,
        conflicts=tuple(conflict.warning for conflict in found),
        non_tools=resolved.others,
        loadable=tuple(targets.loadable(resolved)),
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
    context = resolution.build_context(_snapshot(stored, agent, kind_loadouts))
    return context.offered(now.active | now.non_tools) | now.deferred


def _snapshot(
    stored: catalog.Catalog, agent: agents.Agent, kind_loadouts: Mapping[str, str]
) -> resolution.Snapshot:
    return resolution.Snapshot(catalog=stored, agent=agent, session=sessions.NEW, kind_loadouts=kind_loadouts)


def toolkits(stored: catalog.Catalog, active: Iterable[str]) -> frozenset[str]:
    """Return the toolkits that have one of these tools."""
    # Tools of one toolkit share their toolkits, so the set is small.
    return frozenset(key for kits in set(map(_toolkits_of(stored).get, active)) if kits for key in kits)


@catalog.derived
def _toolkits_of(stored: catalog.Catalog) -> Mapping[str, tuple[str, ...]]:
    return {key: tuple(kit.key for kit in kits) for key, kits in stored.toolkits_of.items()}


def plugins(stored: catalog.Catalog, active: Iterable[str]) -> frozenset[str]:
    """Return the plugins that have one of these tools."""
    return frozenset(map(_plugins_of(stored).__getitem__, active)) - {""}


@catalog.derived
def _plugins_of(stored: catalog.Catalog) -> Mapping[str, str]:
    return {key: tool.plugin for key, tool in stored.tools.items()}
