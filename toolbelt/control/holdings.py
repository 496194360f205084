"""Which agents have which tools and toolkits now? Asked from the tool's side, for all agents at once.

Read in a fixed number of queries, however many agents and tools there are; nothing here writes. It is what a request
outside any session would have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from toolbelt import conf
from toolbelt.core import agents, budgets, catalog, resolution
from toolbelt.store import agents as agent_rows
from toolbelt.store import snapshots


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """One agent, and what is decided for it."""

    agent: agents.Agent
    resolved: budgets.Resolution

    def decisions(self, toolkit: catalog.Toolkit) -> Mapping[str, resolution.Decision]:
        """Decide for the members of the toolkit, in their order."""
        return {key: self.resolved.decision(key) for key in members(self.resolved.standing.catalog, toolkit)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Holdings:
    """The catalog, and all agents that are not archived, in stored order."""

    catalog: catalog.Catalog
    holders: Sequence[Holder]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """The catalog alone, and the decision for each tool that no agent can have: it is unavailable, or stopped."""

    catalog: catalog.Catalog
    closed: Mapping[str, resolution.Decision]


def every() -> Holdings:
    """Decide for all agents."""
    return of(snapshots.catalog())


def of(stored: catalog.Catalog, agent: str | None = None) -> Holdings:
    """Decide for all agents that are not archived, or for one of them, beside this catalog, which may be one that is
    only thought of.
    """
    narrowed = {} if agent is None else {"key": agent}
    agents_there = [] if agent == "" else agent_rows.present(**narrowed)
    return Holdings(
        catalog=stored,
        holders=tuple(
            Holder(agent=one, resolved=budgets.resolve(_snapshot(stored, one))) for one in agents_there
        ),
    )


def shelf() -> Shelf:
    """Look at the catalog, whoever has what."""
    stored = snapshots.catalog()
    return Shelf(catalog=stored, closed=closed(stored))


def closed(stored: catalog.Catalog) -> dict[str, resolution.Decision]:
    """Decide for every tool as for an agent for which nothing is set; give what the catalog alone decides."""
    nobody = resolution.stand(_snapshot(stored, agents.Agent(key="")))
    decided = (resolution.decide(nobody, key) for key in stored.tools)
    return {one.tool: one for one in decided if one.state in ("unavailable", "denied")}


def members(stored: catalog.Catalog, toolkit: catalog.Toolkit) -> tuple[str, ...]:
    """Name the members of the toolkit that exist, in their order."""
    return tuple(member.tool for member in toolkit.members if member.tool in stored.tools)


def _snapshot(stored: catalog.Catalog, agent: agents.Agent) -> resolution.Snapshot:
    return resolution.Snapshot(catalog=stored, agent=agent, kind_loadouts=conf.KIND_LOADOUTS)
