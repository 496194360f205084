"""What does an operator want to look at? Read for the screens in a fixed number of queries; nothing here writes."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypedDict, Unpack

from toolbelt import conf
from toolbelt.control import endings, holdings
from toolbelt.core import agents, belts, budgets, catalog, inventory, loadouts, resolution, surface
from toolbelt.store import agents as agent_rows
from toolbelt.store import audit, calls, counts, entries, revisions, snapshots

Entry = audit.Entry
Call = calls.Call
Counts = counts.Counts
call_records = calls.page


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One agent in a list, with its newest change. ``holder`` says what it has."""

    holder: holdings.Holder
    last: Entry | None = None

    @property
    def agent(self) -> agents.Agent:
        """The agent itself."""
        return self.holder.agent

    @property
    def loadout(self) -> str:
        """The loadout in force."""
        return self.agent.loadout_name(conf.KIND_LOADOUTS)

    @property
    def inventory(self) -> inventory.Inventory:
        """What it has outside any session."""
        return self.holder.inventory

    @property
    def total(self) -> int:
        """How many tools there are."""
        return len(self.holder.catalog.tools)


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Everything about one agent's access: the surface of a request outside any session, what each overridden tool
    would be without its override, and the newest entry of the agent and of each of its switches and overrides (by key).
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
        """Return the decision for a tool of the catalog."""
        return self.surface.resolution.decision(tool)

    @property
    def summary(self) -> Summary:
        """Give what a list would say of the agent."""
        return Summary(holder=holdings.Holder(agent=self.agent, catalog=self.catalog), last=self.last)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How one agent is configured, as the entry of a belt; and the loadouts that there are to choose from."""

    summary: Summary
    surface: surface.Surface
    entry: Mapping[str, Any]
    loadouts: Sequence[str]


def summaries(*, archived: bool = False) -> Sequence[Summary]:
    """Summarise every agent that is not archived, or else those that are, in stored order."""
    return [Summary(holder=holder) for holder in holdings.every(archived=archived).holders]


def with_last(every: Sequence[Summary]) -> Sequence[Summary]:
    """Add the newest change of each of these agents."""
    latest = audit.newest("agent", [one.agent.key for one in every])
    return [dataclasses.replace(one, last=latest.get(one.agent.key)) for one in every]


def summary(agent: str) -> Summary:
    """Summarise one agent. Raises errors.NotFound."""
    return _summary(snapshots.find(agent, None))


def settings(agent: str) -> Settings:
    """Look at how one agent is configured. Raises errors.NotFound."""
    found = snapshots.find(agent, None)
    return Settings(
        summary=_summary(found),
        surface=surface.build(_snapshot(found.catalog, found.agent)),
        entry=belts.entry("agent", found.agent),
        loadouts=loadouts.all_names(found.catalog),
    )


def access(agent: str, message: str | None = None) -> Access:
    """Look at one agent's access, and at the directive for ``message``. Raises errors.NotFound."""
    found = snapshots.find(agent, None)
    snapshot = _snapshot(found.catalog, found.agent)
    resolved = budgets.resolve(snapshot)
    return Access(
        agent=found.agent,
        loadout=found.agent.loadout_name(conf.KIND_LOADOUTS),
        catalog=found.catalog,
        surface=surface.of(resolved, snapshot, message, revision=found.number),
        inherited=_inherited(snapshot),
        last=_last(agent),
        switched=audit.newest_by_key("agent", agent),
        revision=found.number,
    )


def count() -> Counts:
    """Count what stands as a number in the frame around the pages."""
    return counts.count()


def revision(agent: str = "") -> int:
    """Give the number of the last write that may concern this agent, or of any. Raises NotFound."""
    return revisions.number_of(agent) if agent else revisions.number()


def is_toolkit(key: str) -> bool:
    """Say whether a toolkit is called so."""
    return key in snapshots.catalog().toolkits


def section_counts() -> dict[str, int]:
    """Count the entries of each kind that a belt of all would hold."""
    stored = snapshots.catalog()
    return {
        "category": sum(name not in catalog.CATEGORIES for name in stored.categories),
        "plugin": len(stored.plugins),
        "tool": len(stored.tools),
        "toolkit": len(stored.toolkits),
        "loadout": len(stored.loadouts),
        "agent": len(entries.names("agent")),
        "sub_app": len(stored.sub_apps),
    }


def toolkit_keys() -> list[str]:
    """Name the toolkits, in order."""
    return list(snapshots.catalog().toolkits)


def agent_keys() -> list[str]:
    """Name the agents that are not archived, in order."""
    return agent_rows.keys()


def is_any_agent() -> bool:
    """Say whether there is any agent, archived or not."""
    return bool(entries.names("agent"))


class Asked(TypedDict, total=False):
    """What the log is asked for, of one agent or of everything: as :class:`toolbelt.store.audit.Asked` has it."""

    actor: str
    action: str
    key: str
    via: str
    batch: uuid.UUID | None
    since: datetime | None
    until: datetime | None


def changes(
    *,
    agent: str = "",
    kind: str = "",
    name: str = "",
    older_than: int | None = None,
    newer_than: int | None = None,
    size: int = 50,
    **asked: Unpack[Asked],
) -> audit.Page:
    """Give a page of the audit log, newest first; ``agent`` narrows it to one agent, ``kind`` and ``name`` to things
    of a kind, or to one of them. See store.audit.page.
    """
    if agent and (kind not in ("", "agent") or name not in ("", agent)):
        # All of what is asked for holds, and nothing is both.
        return audit.Page(entries=(), total=0, has_newer=False, has_older=False)
    return audit.page(
        subject_kind="agent" if agent else kind,
        subject_key=agent or name,
        older_than=older_than,
        newer_than=newer_than,
        size=size,
        **asked,
    )


def unrecorded(*, agent: str = "", **asked: Unpack[Asked]) -> list[Entry]:
    """Give what the log is still to tell of what :func:`changes` would give: what has ended, and nobody has written
    since. As entries that have no id yet (0), what ended last first; nothing is written here.
    """
    if asked.get("batch") is not None:
        return []
    since, until = asked.get("since"), asked.get("until")
    return [
        entry
        for entry in endings.unrecorded(agent)
        if asked.get("actor", "") in ("", entry.actor)
        and asked.get("action", "") in ("", entry.action)
        and asked.get("key", "") in ("", entry.key)
        and asked.get("via", "") in ("", entry.via)
        and (since is None or since <= entry.at)
        and (until is None or entry.at < until)
    ]


def all_changes(*, agent: str = "", **asked: Unpack[Asked]) -> Iterator[Sequence[Entry]]:
    """Give all of the log that :func:`changes` would give page by page, some hundred entries at a time."""
    return audit.walk(subject_kind="agent" if agent else "", subject_key=agent, **asked)


def change(entry: int) -> Entry | None:
    """Give one audit entry."""
    return audit.find(entry)


def said(field: str, agent: str = "") -> list[str]:
    """Give what the audit log says in ``actor``, ``action``, ``key`` or ``via``, of one agent or of everything: what
    it can be filtered by.
    """
    return audit.said(field, *(("agent", agent) if agent else ()))


def _summary(found: snapshots.Found) -> Summary:
    holder = holdings.Holder(agent=found.agent, catalog=found.catalog)
    return Summary(holder=holder, last=_last(found.agent.key))


def _last(agent: str) -> Entry | None:
    return next(iter(audit.page(subject_kind="agent", subject_key=agent, size=1).entries), None)


def _snapshot(stored: catalog.Catalog, agent: agents.Agent) -> resolution.Snapshot:
    return resolution.Snapshot(catalog=stored, agent=agent, kind_loadouts=conf.KIND_LOADOUTS)


def _inherited(snapshot: resolution.Snapshot) -> dict[str, Any]:
    """Decide for each overridden tool as if it were not, each on its own."""
    agent = snapshot.agent
    found = {}
    for tool in agent.overrides:
        if tool in snapshot.catalog.tools:
            others = {key: on for key, on in agent.overrides.items() if key != tool}
            without = dataclasses.replace(snapshot, agent=dataclasses.replace(agent, overrides=others))
            found[tool] = budgets.resolve(without).decision(tool)
    return found
