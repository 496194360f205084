"""How is the audit log filled?"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django.utils.http import urlencode

from toolbelt.control import queries
from toolbelt.web import words
from toolbelt.web.pages import entries
from toolbelt.web.presenters import answers, changes, pieces

_FAMILIES = {
    "switch.set": "Switch set",
    "switch.clear": "Switch cleared",
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
) -> changes.ChangesPage:
    """Fill a page of the log, narrowed as the form says."""
    found = queries.changes(
        actor=said["person"],
        agent=said["agent"],
        action=said["action"],
        older_than=said["older"] or None,
        newer_than=said["newer"] or None,
    )
    told = [(words.day(entry.at), entries.present(entry, may_undo(entry))) for entry in found.entries]
    narrowed = {name: said[name] for name in ("person", "agent", "action") if said[name]}
    count = found.total
    return changes.ChangesPage(
        days=days(told),
        people=choices("Anyone", {name: name for name in queries.said("actor")}, said["person"]),
        agents=choices("Any agent", {name: name for name in queries.agent_keys()}, said["agent"]),
        actions=choices(
            "Any change", {name: action(name) for name in queries.said("action")}, said["action"]
        ),
        narrowed=bool(narrowed),
        matches=f"{words.number(count)} change{'' if count == 1 else 's'}, newest first",
        pages=pages(found, narrowed, path),
        notice=notice,
        here=here,
    )


def days(told: Iterable[tuple[str, changes.Entry]]) -> tuple[changes.Day, ...]:
    """Put entries together that stand under the same day, each given with its day."""
    return tuple(
        changes.Day(words=day, entries=tuple(entry for _, entry in grouped))
        for day, grouped in itertools.groupby(told, key=lambda one: one[0])
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
