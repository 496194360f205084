"""How is the audit log filled?"""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode

from toolbelt.control import queries, undo
from toolbelt.web import words
from toolbelt.web.pages import entries
from toolbelt.web.presenters import answers, changes, pieces

# What narrows the log, by the names in the address.
FILTERS = ("person", "agent", "action", "key", "via", "batch", "since", "until")
_FAMILIES = {
    "switch.set": "Switch set",
    "switch.clear": "Switch cleared",
    "switch.end": "Switch ended",
    "override.end": "Override ended",
    "override.set": "Override set",
    "override.clear": "Override cleared",
    "agent.equip": "Agent equipped",
    "agent.allow-toolkits": "Loadable toolkits changed",
}


def page(
    said: Mapping[str, Any],
    *,
    path: str,
    here: str,
    notice: answers.Notice | None,
    may_undo: Callable[[queries.Entry], bool],
    may_see: Callable[[str], bool],
) -> changes.ChangesPage:
    """Fill a page of the log, narrowed as the form says; ``may_see`` says of what kinds the reader may look inside."""
    found = queries.changes(**asked(said), older_than=said["older"] or None, newer_than=said["newer"] or None)
    waiting = unrecorded(asked(said), found)
    told = with_unrecorded(
        [
            (entry, entries.present(entry, may_undo(entry), is_open=may_see(entry.subject_kind)))
            for entry in found.entries
        ],
        waiting,
    )
    narrowed = {name: str(said[name]) for name in FILTERS if said[name]}
    return changes.ChangesPage(
        days=days((words.day(entry.at), line) for entry, line in told),
        people=choices("Anyone", {name: name for name in queries.said("actor")}, said["person"]),
        agents=choices("Any agent", {name: name for name in queries.agent_keys()}, said["agent"]),
        actions=choices(
            "Any change", {name: action(name) for name in queries.said("action")}, said["action"]
        ),
        shells=choices(
            "From anywhere", {name: entries.shell(name) for name in queries.said("via")}, said["via"]
        ),
        key=said["key"],
        keys=tuple(key for key in queries.said("key") if key),
        since=str(said["since"]),
        until=str(said["until"]),
        act=_act(found, may_undo, path) if said["batch"] else None,
        downloads=tuple(
            changes.Download(
                label=label,
                url=f"{reverse('web:download_changes')}?{urlencode({**narrowed, 'form': form})}",
            )
            for form, label in (("csv", "CSV"), ("json", "JSON"))
        ),
        narrowed=bool(narrowed),
        matches=matches(found.total, len(waiting)),
        pages=pages(found, narrowed, path),
        notice=notice,
        here=here,
    )


def asked(said: Mapping[str, Any]) -> dict[str, Any]:
    """Give what the filters ask the log for; the day of ``until`` is the last one that counts."""
    return {
        "actor": said["person"],
        "agent": said["agent"],
        "action": said["action"],
        "key": said["key"],
        "via": said["via"],
        "batch": said["batch"] or None,
        "since": _midnight(said["since"]),
        "until": _midnight(said["until"], days=1),
    }


def _midnight(day: dt.date | str, days: int = 0) -> dt.datetime | None:
    """Give the first moment of a day, or of one so many days later; none for a day beyond the calendar."""
    if not isinstance(day, dt.date):
        return None
    try:
        return timezone.make_aware(dt.datetime.combine(day + dt.timedelta(days=days), dt.time()))
    except (OverflowError, ValueError):
        return None


def _act(found: Any, may_undo: Callable[[queries.Entry], bool], path: str) -> changes.Act | None:
    if not found.entries:
        return None
    # All of it, also where it is longer than a page.
    act = undo.act_of(found.entries[0].id)
    left = bool(act) and all(entries.is_undoable(one) and may_undo(one) for one in act)
    count = found.total
    return changes.Act(
        words=f"One act of {words.number(count)} {'change' if count == 1 else 'changes'} by {found.entries[0].actor}.",
        entry=act[0].id if left else None,
        all_url=path,
    )


def days(told: Iterable[tuple[str, changes.Entry]]) -> tuple[changes.Day, ...]:
    """Put entries together that stand under the same day, each given with its day."""
    return tuple(
        changes.Day(words=day, entries=tuple(entry for _, entry in grouped))
        for day, grouped in itertools.groupby(told, key=lambda one: one[0])
    )


def unrecorded(narrowing: Mapping[str, Any], found: Any) -> list[queries.Entry]:
    """Give what has ended and is still to be recorded; it belongs on the first page."""
    return [] if found.has_newer else queries.unrecorded(**narrowing)


def with_unrecorded(
    told: Iterable[tuple[queries.Entry, changes.Entry]], waiting: Iterable[queries.Entry]
) -> list[tuple[queries.Entry, changes.Entry]]:
    """Put what is still to be recorded among what is, each before what was there when it ended."""
    lines, left = [], [(entry, entries.present_unrecorded(entry)) for entry in waiting]
    for entry, line in told:
        while left and left[0][0].at >= entry.at:
            lines.append(left.pop(0))
        lines.append((entry, line))
    return [*lines, *left]


def matches(count: int, waiting: int) -> str:
    """Say how many changes there are, and how many ends are still to be recorded."""
    said = f"{words.number(count)} change{'' if count == 1 else 's'}, newest first"
    return (
        f"{said}; {words.number(waiting)} end{'' if waiting == 1 else 's'} to be recorded"
        if waiting
        else said
    )


def pages(found: Any, narrowed: Mapping[str, str], path: str) -> changes.Pages:
    """Say where in the log a page is, and where the next ones are."""
    if not found.entries:
        return changes.Pages(words="")
    first, last = found.entries[0].id, found.entries[-1].id
    return changes.Pages(
        words=f"{len(found.entries)} of {words.number(found.total)}",
        newer_url=f"{path}?{urlencode({**narrowed, 'newer': first})}" if found.has_newer else "",
        older_url=f"{path}?{urlencode({**narrowed, 'older': last})}" if found.has_older else "",
    )


def action(name: str) -> str:
    """Name an action, to choose it from a list: ``Switch set``."""
    family, _, act = name.partition(".")
    return _FAMILIES.get(name, f"{family.replace('_', '-').capitalize()} {entries.ACTS.get(act, act)}")


def choices(anything: str, names: Mapping[str, str], chosen: str) -> tuple[pieces.Choice, ...]:
    """Give what a list offers, with what narrows nothing before it."""
    first = pieces.Choice(value="", label=anything, chosen=not chosen)
    rest = (pieces.Choice(value=value, label=label, chosen=value == chosen) for value, label in names.items())
    return (first, *rest)
