"""How is the history of one agent filled? As the whole log is, without saying on each line whose it is."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from toolbelt.control import queries
from toolbelt.web import words
from toolbelt.web.pages import agents, changes, entries
from toolbelt.web.presenters import answers, history, pieces


def page(
    agent: str,
    said: Mapping[str, Any],
    *,
    path: str,
    here: str,
    notice: answers.Notice | None,
    may_change: bool,
    may_undo: Callable[[queries.Entry], bool],
) -> history.HistoryPage:
    """Fill a page of the history, narrowed as the form says. Raises errors.NotFound for an unknown agent."""
    one = queries.summary(agent)
    narrowing = {**changes.asked(said), "agent": agent}
    found = queries.changes(
        **narrowing,
        older_than=said["older"] or None,
        newer_than=said["newer"] or None,
    )
    waiting = changes.unrecorded(narrowing, found)
    told = changes.with_unrecorded(
        [(entry, entries.present(entry, may_undo(entry))) for entry in found.entries], waiting
    )
    narrowed = {name: str(said[name]) for name in changes.FILTERS if said[name] and name != "agent"}
    return history.HistoryPage(
        agent=agents.header(one),
        days=changes.days((words.day(entry.at), dataclasses.replace(line, agent="")) for entry, line in told),
        people=changes.choices(
            "Anyone", {name: name for name in queries.said("actor", agent)}, said["person"]
        ),
        actions=changes.choices(
            "Any change",
            {name: changes.action(name) for name in queries.said("action", agent)},
            said["action"],
        ),
        keys=_keys(agent, said["key"]),
        since=str(said["since"]),
        until=str(said["until"]),
        narrowed=bool(narrowed),
        matches=changes.matches(found.total, len(waiting)),
        pages=changes.pages(found, narrowed, path),
        notice=notice,
        may_change=may_change,
        here=here,
    )


def _keys(agent: str, chosen: str) -> tuple[pieces.Choice, ...]:
    names = {key: key for key in queries.said("key", agent) if key}
    return changes.choices("Any toolkit or tool", names, chosen)
