"""The audit log."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode

from toolbelt.control import undo
from toolbelt.control.reports import queries
from toolbelt.web.kit import entries, paging, pieces, words

# What narrows the log, by the names in the address.
FILTERS = ("person", "agent", "action", "key", "via", "batch", "since", "until")
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
    **frame: Any,
) -> pieces.View:
    """Fill a page of the log, narrowed as the form says; ``may_see`` says of what kinds the reader may look inside."""
    found = queries.changes(
        **asked(filters), older_than=filters["older"] or None, newer_than=filters["newer"] or None
    )
    waiting = unrecorded(asked(filters), found)
    told = with_unrecorded(
        [
            (entry, entries.present(entry, may_undo(entry), is_open=may_see(entry.subject_kind)))
            for entry in found.entries
        ],
        waiting,
    )
    narrowed = {name: str(filters[name]) for name in FILTERS if filters[name]}
    return pieces.View(
        days=days((words.day(entry.at), line) for entry, line in told),
        people=pieces.choices(
            {name: name for name in queries.logged_values("actor")}, filters["person"], "Anyone"
        ),
        agents=pieces.choices({name: name for name in queries.agent_keys()}, filters["agent"], "Any agent"),
        actions=pieces.choices(
            {name: action(name) for name in queries.logged_values("action")}, filters["action"], "Any change"
        ),
        shells=pieces.choices(
            {name: entries.shell(name) for name in queries.logged_values("via")}, filters["via"], "Any source"
        ),
        key=filters["key"],
        keys=tuple(key for key in queries.logged_values("key") if key),
        since=str(filters["since"]),
        until=str(filters["until"]),
        act=_act(found, may_undo, path) if filters["batch"] else None,
        downloads=tuple(
            pieces.View(
                label=label,
                url=f"{reverse('web:download_changes')}?{urlencode({**narrowed, 'form': form})}",
            )
            for form, label in (("csv", "CSV"), ("json", "JSON"))
        ),
        narrowed=bool(narrowed),
        matches=matches(found.total, len(waiting)),
        pages=pages(found, narrowed, path),
        **frame,
    )


def asked(filters: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the filters ask the log for; the day of ``until`` is the last one that counts."""
    return {
        "actor": filters["person"],
        "agent": filters["agent"],
        "action": filters["action"],
        "key": filters["key"],
        "via": filters["via"],
        "batch": filters["batch"] or None,
        "since": _midnight(filters["since"]),
        "until": _midnight(filters["until"], days=1),
    }


def _midnight(day: dt.date | str, days: int = 0) -> dt.datetime | None:
    """Return the first moment of a day, or of one so many days later; none for a day beyond the calendar."""
    if not isinstance(day, dt.date):
        return None
    try:
        return timezone.make_aware(dt.datetime.combine(day + dt.timedelta(days=days), dt.time()))
    except (OverflowError, ValueError):
        return None


def _act(found: Any, may_undo: Callable[[queries.Entry], bool], path: str) -> pieces.View | None:
    if not found.entries:
        return None
    # All of it, also where it is longer than a page.
    act = undo.batch_of(found.entries[0].id)
    left = bool(act) and all(entries.is_undoable(one) and may_undo(one) for one in act)
    count = found.total
    return pieces.View(
        words=f"{words.number(count)} change{'' if count == 1 else 's'} made together by {found.entries[0].actor}.",
        entry=act[0].id if left else None,
        all_url=path,
    )


def days(told: Iterable[tuple[str, entries.Entry]]) -> tuple[pieces.View, ...]:
    """Put entries together that stand under the same day, each given with its day."""
    return tuple(
        pieces.View(words=day, entries=tuple(entry for _, entry in grouped))
        for day, grouped in itertools.groupby(told, key=lambda one: one[0])
    )


def unrecorded(narrowing: Mapping[str, Any], found: Any) -> list[queries.Entry]:
    """Return what has ended and is still to be recorded; it belongs on the first page."""
    return [] if found.has_newer else queries.unrecorded(**narrowing)


def with_unrecorded(
    told: Iterable[tuple[queries.Entry, entries.Entry]], waiting: Iterable[queries.Entry]
) -> list[tuple[queries.Entry, entries.Entry]]:
    """Put what is still to be recorded among what is, each before what was there when it ended."""
    lines, left = [], [(entry, entries.present_unrecorded(entry)) for entry in waiting]
    for entry, line in told:
        while left and left[0][0].at >= entry.at:
            lines.append(left.pop(0))
        lines.append((entry, line))
    return [*lines, *left]


def matches(count: int, waiting: int) -> str:
    """Return how many changes there are, and how many ends are still to be recorded."""
    said = f"{words.number(count)} change{'' if count == 1 else 's'}, newest first"
    return (
        f"{said}; {words.number(waiting)} ended setting{'' if waiting == 1 else 's'} not yet logged"
        if waiting
        else said
    )


def pages(found: Any, narrowed: Mapping[str, str], path: str) -> paging.Pages:
    """Return where in the log a page is, and where the next ones are."""
    if not found.entries:
        return paging.Pages(words="")
    first, last = found.entries[0].id, found.entries[-1].id
    return paging.Pages(
        words=f"{len(found.entries)} of {words.number(found.total)}",
        newer_url=f"{path}?{urlencode({**narrowed, 'newer': first})}" if found.has_newer else "",
        older_url=f"{path}?{urlencode({**narrowed, 'older': last})}" if found.has_older else "",
    )


def action(name: str) -> str:
    """Name an action, to choose it from a list: ``Switch set``."""
    family, _, act = name.partition(".")
    return _FAMILIES.get(name, f"{family.replace('_', '-').capitalize()} {entries.ACTS.get(act, act)}")
