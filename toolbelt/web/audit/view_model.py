"""The audit log."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django.urls import reverse
from django.utils.http import urlencode

from toolbelt.control import undo
from toolbelt.control.access import access_index
from toolbelt.control.reports import queries
from toolbelt.web.kit import audit_words, paging, periods, pieces, words

# What narrows the log, by the names in the address.
FILTERS = ("person", "agent", "action", "key", "via", "batch")
_FAMILIES = {
    "switch.set": "Switch set",
    "switch.clear": "Switch reset",
    "switch.end": "Switch ended",
    "override.end": "Override ended",
    "override.set": "Override set",
    "override.clear": "Override reset",
    "agent.equip": "Loadout changed",
}


def page(
    filters: Mapping[str, Any],
    *,
    path: str,
    may_undo: Callable[[queries.Entry], bool],
    may_see: Callable[[str], bool],
) -> pieces.View:
    """Return a page of the log, narrowed by ``filters``; ``may_see`` says inside which kinds of entries the reader may
    look.
    """
    shown = log(filters, path=path, may_undo=may_undo, may_see=may_see)
    shown.agents = pieces.choices(queries.agent_keys(), filters["agent"], "Any agent")
    shown.sources = pieces.choices(
        {name: audit_words.source(name) for name in queries.logged_values("via")},
        filters["via"],
        "Any source",
    )
    # Shared things belong to no agent, so the filter leaves out their changes.
    shown.of_agent = filters["agent"]
    others = {name: value for name, value in shown.narrowed.items() if name != "agent"}
    shown.of_all_url = f"{path}?{urlencode(others)}" if others else path
    shown.key = filters["key"]
    shown.keys = tuple(key for key in queries.logged_values("key") if key)
    shown.batch = _batch(shown.log_page, may_undo, path) if filters["batch"] else None
    shown.downloads = tuple(
        (label, f"{reverse('web:download_audit_log')}?{urlencode({**shown.narrowed, 'form': form})}")
        for form, label in (("csv", "CSV"), ("json", "JSON"))
    )
    return shown


def log(
    filters: Mapping[str, Any],
    *,
    path: str,
    may_undo: Callable[[queries.Entry], bool],
    may_see: Callable[[str], bool] = lambda kind: False,
    agent: str = "",
) -> pieces.View:
    """Return what the log and the history of an ``agent`` have in common."""
    asked_for = log_query(filters) | ({"agent": agent} if agent else {})
    log_page = queries.changes(
        **asked_for, older_than=filters["older"] or None, newer_than=filters["newer"] or None
    )
    stored = access_index.catalog_view().catalog
    recorded = [
        (
            entry,
            audit_words.present(entry, may_undo(entry), is_open=may_see(entry.subject_kind), stored=stored),
        )
        for entry in log_page.entries
    ]
    # What has ended and is still to be recorded belongs on the first page.
    waiting = [] if log_page.has_newer else queries.unrecorded(**asked_for)
    lines = _with_unrecorded(
        recorded, ((entry, audit_words.present_unrecorded(entry, stored)) for entry in waiting)
    )
    narrowed = {
        name: str(filters[name]) for name in FILTERS if filters[name] and not (agent and name == "agent")
    } | periods.address_parameters(filters)
    return pieces.View(
        log_page=log_page,
        days=tuple(
            pieces.View(words=day, entries=tuple(line for _, line in pairs))
            for day, pairs in itertools.groupby(lines, key=lambda pair: words.day(pair[0].at))
        ),
        people=pieces.choices(
            {name: audit_words.actor(name) for name in queries.logged_values("actor", agent)},
            filters["person"],
            "Anyone",
        ),
        actions=pieces.choices(
            {name: action(name) for name in queries.logged_values("action", agent)},
            filters["action"],
            "Any change",
        ),
        period=periods.present(filters, anything="Any time"),
        narrowed=narrowed,
        matches=f"{words.counted(log_page.total, 'change')}, newest first"
        + (f"; {words.counted(len(waiting), 'ended setting')} not yet logged" if waiting else ""),
        pages=_pages(log_page, narrowed, path),
    )


def log_query(filters: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the filters ask the log for; the day of ``until`` is the last one that counts."""
    first, last = periods.days(filters)
    return {
        "actor": filters["person"],
        "agent": filters["agent"],
        "action": filters["action"],
        "key": filters["key"],
        "via": filters["via"],
        "batch": filters["batch"] or None,
        **periods.time_range(first, last),
    }


def _batch(log_page: Any, may_undo: Callable[[queries.Entry], bool], path: str) -> pieces.View | None:
    if not log_page.entries:
        return None
    # All of it, also if it is longer than a page.
    batch = undo.batch_of(log_page.entries[0].id)
    is_undoable = bool(batch) and all(audit_words.is_undoable(entry) and may_undo(entry) for entry in batch)
    by = audit_words.actor(log_page.entries[0].actor, log_page.entries[0].via)
    return pieces.View(
        words=f"{words.counted(log_page.total, 'change')} made together by {by}.",
        entry=batch[0].id if is_undoable else None,
        all_url=path,
    )


def _with_unrecorded(
    recorded: Iterable[tuple[queries.Entry, pieces.View]],
    waiting: Iterable[tuple[queries.Entry, pieces.View]],
) -> list[tuple[queries.Entry, pieces.View]]:
    """Return the entries with those that are still to be recorded, by time; at the same moment these come first."""
    return list(heapq.merge(waiting, recorded, key=lambda pair: pair[0].at, reverse=True))


def _pages(log_page: Any, narrowed: Mapping[str, str], path: str) -> paging.Pages:
    """Return where in the log a page is, and where the next ones are."""
    if not log_page.entries:
        return paging.Pages(words="")
    first, last = log_page.entries[0].id, log_page.entries[-1].id
    return paging.Pages(
        words=f"{len(log_page.entries)} of {words.number(log_page.total)}",
        newer_url=f"{path}?{urlencode({**narrowed, 'newer': first})}" if log_page.has_newer else "",
        older_url=f"{path}?{urlencode({**narrowed, 'older': last})}" if log_page.has_older else "",
    )


def action(name: str) -> str:
    """Return the name of an action, to choose it from a list: ``Switch set``."""
    family, _, act = name.partition(".")
    return _FAMILIES.get(name, f"{family.replace('_', '-').capitalize()} {audit_words.ACTS.get(act, act)}")
