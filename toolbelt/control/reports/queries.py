"""Queries for the dashboard, in a fixed number of database queries; nothing here writes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

from toolbelt import conf
from toolbelt.control.access import access_index, expirations
from toolbelt.core import agents, belts, catalog, loadouts, surface
from toolbelt.core import sessions as conversations
from toolbelt.core.rules import budgets, inventory, resolution
from toolbelt.store import agents as agent_rows
from toolbelt.store import audit, counts, entries, revisions, snapshots
from toolbelt.store import call_records as calls

Entry = audit.Entry
Call = calls.Call
Counts = counts.Counts
call_records = calls.page


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One agent in a list, with its newest change. ``access`` is what it has."""

    access: access_index.AgentAccess
    last: Entry | None = None

    @property
    def agent(self) -> agents.Agent:
        """The agent."""
        return self.access.agent

    @property
    def loadout(self) -> str:
        """The loadout in force."""
        return self.agent.loadout_name(conf.KIND_LOADOUTS)

    @property
    def inventory(self) -> inventory.Inventory:
        """What it has outside any session."""
        return self.access.inventory

    @property
    def total(self) -> int:
        """The number of all tools."""
        return self.access.catalog.tool_count


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """One agent's access: the surface of a new session, the decision for each overridden tool without
    its override, and the newest audit entries of the agent and of each of its switches and overrides (by key).
    """

    agent: agents.Agent
    loadout: str
    catalog: catalog.Catalog
    surface: surface.Surface
    inherited: Mapping[str, resolution.Decision]
    last: Entry | None
    switched: Mapping[str, Entry]
    revision: int

    def decision(self, tool: str) -> resolution.Decision:
        """Return the decision for a tool of the catalog, as people read it."""
        return resolution.as_shown(self.catalog, self.surface.resolution.decision(tool))

    @property
    def summary(self) -> Summary:
        """Return the agent's summary for a list."""
        return Summary(
            access=access_index.AgentAccess(agent=self.agent, catalog=self.catalog), last=self.last
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One agent's configuration as the entry of a belt, and the loadouts to choose from."""

    summary: Summary
    surface: surface.Surface
    entry: Mapping[str, Any]
    loadouts: Sequence[str]


def summaries(*, archived: bool = False) -> Sequence[Summary]:
    """Return a summary of every agent that is not archived, or only of those that are, in stored order."""
    return [Summary(access=access) for access in access_index.load(archived=archived).agents]


def with_last(summaries_: Sequence[Summary]) -> Sequence[Summary]:
    """Return the summaries with the newest change of each agent."""
    latest = audit.newest("agent", [item.agent.key for item in summaries_])
    return [dataclasses.replace(item, last=latest.get(item.agent.key)) for item in summaries_]


def summary(agent: str) -> Summary:
    """Return the summary of one agent; raise errors.NotFound."""
    return _summary(snapshots.find(agent, None))


def settings(agent: str) -> Settings:
    """Return one agent's configuration; raise errors.NotFound."""
    current = snapshots.find(agent, None)
    return Settings(
        summary=_summary(current),
        surface=surface.build(snapshots.of(current.catalog, current.agent, session=conversations.NEW)),
        entry=belts.entry("agent", current.agent),
        loadouts=loadouts.all_names(current.catalog),
    )


def access(agent: str, message: str | None = None) -> Access:
    """Return one agent's access, and the directive for ``message``; raise errors.NotFound."""
    current = snapshots.find(agent, None)
    snapshot = snapshots.of(current.catalog, current.agent, session=conversations.NEW)
    resolved = budgets.resolve(snapshot)
    return Access(
        agent=current.agent,
        loadout=current.agent.loadout_name(conf.KIND_LOADOUTS),
        catalog=current.catalog,
        surface=surface.of(resolved, snapshot, message, revision=current.number),
        inherited=budgets.without_each_override(snapshot),
        last=_last(agent),
        switched=audit.newest_by_key("agent", agent),
        revision=current.number,
    )


def count() -> Counts:
    """Return the counts that the navigation shows."""
    return counts.count()


def revision(agent: str = "") -> int:
    """Return the number of the last write that may concern this agent, or of any write; raise NotFound."""
    return revisions.number_of(agent) if agent else revisions.number()


def is_toolkit(key: str) -> bool:
    """Return whether this is the key of a toolkit."""
    return key in snapshots.catalog().toolkits


def section_counts() -> dict[str, int]:
    """Return the number of entries of each kind in a belt of the whole configuration."""
    stored = snapshots.catalog()
    return {
        "category": sum(name not in catalog.CATEGORIES for name in stored.categories),
        "plugin": len(stored.plugins),
        "tool": len(stored.tools),
        "toolkit": len(stored.toolkits),
        "loadout": len(stored.loadouts),
        "agent": len(entries.names("agent")),
        "sub_app": len(stored.sub_apps),
        "gate_rule": len(stored.gate_rules),
    }


def toolkit_keys() -> list[str]:
    """Return the keys of the toolkits, in order."""
    return list(snapshots.catalog().toolkits)


def agent_keys() -> list[str]:
    """Return the keys of the agents that are not archived, in order."""
    return agent_rows.keys()


def agents_briefly() -> list[agents.Agent]:
    """Return all agents in order, with only what people identify them by."""
    return agent_rows.load_labels()


def agent_titles() -> dict[str, str]:
    """Return the titles of all agents by key, archived ones as well; empty for an agent without a title."""
    return agent_rows.titles()


def agent_title(key: str) -> str:
    """Return an agent's title; empty if it has none, or does not exist."""
    return agent_rows.load_title(key)


def is_any_agent() -> bool:
    """Return whether there is any agent, archived or not."""
    return bool(entries.names("agent"))


def changes(
    *,
    agent: str = "",
    kind: str = "",
    name: str = "",
    older_than: int | None = None,
    newer_than: int | None = None,
    size: int = 50,
    folded: bool = False,
    **filters: Unpack[audit.AuditFilters],
) -> audit.Page:
    """Return a page of the audit log, newest first; ``agent`` limits it to one agent, ``kind`` and ``name`` to things
    of a kind, or to one of them. See store.audit.page.
    """
    if agent and (kind not in ("", "agent") or name not in ("", agent)):
        # All filters must match, and these two exclude each other.
        return audit.Page(entries=(), total=0, has_newer=False, has_older=False)
    return audit.page(
        subject_kind="agent" if agent else kind,
        subject_key=agent or name,
        older_than=older_than,
        newer_than=newer_than,
        size=size,
        folded=folded,
        **filters,
    )


def unrecorded(*, agent: str = "", **filters: Unpack[audit.AuditFilters]) -> list[Entry]:
    """Return the entries for expiries that are not recorded yet, of those that :func:`changes` would return: without an
    id (0), the latest first. Nothing is written here.
    """
    if filters.get("batch") is not None:
        return []
    since, until = filters.get("since"), filters.get("until")
    return [
        entry
        for entry in expirations.unrecorded(agent)
        if filters.get("actor", "") in ("", entry.actor)
        and filters.get("actor_kind") in (None, "", entry.actor_kind)
        and filters.get("about", "") in ("", entry.key, entry.subject_key)
        and filters.get("about_kind", "") in ("", *_about_kinds(entry))
        and filters.get("action", "") in ("", entry.action)
        and filters.get("key", "") in ("", entry.key)
        and filters.get("via", "") in ("", entry.via)
        and (since is None or since <= entry.at)
        and (until is None or entry.at < until)
    ]


def _about_kinds(entry: Entry) -> tuple[str, str]:
    """Return the kinds of what an expiry is about: the agent, and the toolkit or tool; or what was blocked."""
    if entry.action == "block.end":
        return entry.subject_kind, entry.subject_kind
    return entry.subject_kind, "toolkit" if entry.action == "switch.end" else "tool"


def all_changes(*, agent: str = "", **filters: Unpack[audit.AuditFilters]) -> Iterator[Sequence[Entry]]:
    """Yield all entries that :func:`changes` would return page by page, a few hundred at a time."""
    return audit.iterate(subject_kind="agent" if agent else "", subject_key=agent, **filters)


def change(entry: int) -> Entry | None:
    """Return one audit entry."""
    return audit.find(entry)


def logged_values(field: str, agent: str = "") -> list[str]:
    """Return the values of a column of the audit log, of one agent or of everything,
    to filter by.
    """
    return audit.logged_values(field, *(("agent", agent) if agent else ()))


def _summary(current: snapshots.StoredState) -> Summary:
    access = access_index.AgentAccess(agent=current.agent, catalog=current.catalog)
    return Summary(access=access, last=_last(current.agent.key))


def _last(agent: str) -> Entry | None:
    return next(iter(audit.page(subject_kind="agent", subject_key=agent, size=1).entries), None)
