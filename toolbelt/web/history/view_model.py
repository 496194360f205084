"""The history of one agent: the audit log, without naming the agent on each line."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from toolbelt.control.reports import queries
from toolbelt.web.agents import view_model as agents
from toolbelt.web.changes import view_model as changes
from toolbelt.web.kit import entries, pieces, words


def page(
    agent: str,
    filters: Mapping[str, Any],
    *,
    path: str,
    may_undo: Callable[[queries.Entry], bool],
    **frame: Any,
) -> pieces.View:
    """Fill a page of the history, narrowed as the form says. Raises errors.NotFound for an unknown agent."""
    one = queries.summary(agent)
    narrowing = {**changes.asked(filters), "agent": agent}
    found = queries.changes(
        **narrowing,
        older_than=filters["older"] or None,
        newer_than=filters["newer"] or None,
    )
    waiting = changes.unrecorded(narrowing, found)
    told = changes.with_unrecorded(
        [(entry, entries.present(entry, may_undo(entry))) for entry in found.entries], waiting
    )
    narrowed = {name: str(filters[name]) for name in changes.FILTERS if filters[name] and name != "agent"}
    return pieces.View(
        agent=agents.header(one),
        days=changes.days((words.day(entry.at), dataclasses.replace(line, agent="")) for entry, line in told),
        people=pieces.choices(
            {name: name for name in queries.logged_values("actor", agent)}, filters["person"], "Anyone"
        ),
        actions=pieces.choices(
            {name: changes.action(name) for name in queries.logged_values("action", agent)},
            filters["action"],
            "Any change",
        ),
        keys=_keys(agent, filters["key"]),
        since=str(filters["since"]),
        until=str(filters["until"]),
        narrowed=bool(narrowed),
        matches=changes.matches(found.total, len(waiting)),
        pages=changes.pages(found, narrowed, path),
        **frame,
    )


def _keys(agent: str, chosen: str) -> tuple[pieces.Choice, ...]:
    names = {key: key for key in queries.logged_values("key", agent) if key}
    return pieces.choices(names, chosen, "Any toolkit or tool")
