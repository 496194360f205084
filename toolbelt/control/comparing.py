"""In what do two agents differ, or an agent and a loadout, or an agent and what it was? In what is set, and in what
comes of that for each tool. Nothing here writes.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from toolbelt import conf
from toolbelt.control import past
from toolbelt.core import agents, belts, budgets, catalog, errors, grants, keys, loadouts, resolution
from toolbelt.core.belts import comparing
from toolbelt.store import snapshots

_LOADOUT = "loadout:"
# A loadout has no settings but itself.
_OF_A_LOADOUT: tuple[str, ...] = ("loadout",)
_OF_TWO_AGENTS = tuple(name for name in comparing.SETTINGS if name not in comparing.IDENTITY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side. ``version`` is there where it is an agent as it was; ``key`` is empty where it is a loadout.

    ``loadout`` is the one in force. ``resolved`` is what comes of it outside any session.
    """

    name: str
    key: str
    loadout: str
    entry: Mapping[str, Any]
    version: past.Version | None
    resolved: budgets.Resolution

    @property
    def is_now(self) -> bool:
        """Say whether it is an agent as it is: what can be copied to."""
        return bool(self.key) and self.version is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One tool of which comes something else on either side."""

    tool: catalog.Tool
    a: resolution.Decision
    b: resolution.Decision


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Both sides, in what they differ, and what comes of it for each tool, in the order of their keys.

    ``lost`` are the ids of rows that cannot be copied: what they name on side ``a`` is not there any more, or over.
    """

    a: Side
    b: Side
    rows: tuple[belts.Row, ...]
    outcomes: tuple[Outcome, ...]
    lost: frozenset[str]


def compare(a: str, b: str) -> Comparison:
    """Compare two sides: ``ada``; ``loadout:developer``; ``ada@12``, as it was after the audit entry 12; or
    ``ada@2026-11-20T09:30``, as it was then. Raises errors.NotFound and errors.Invalid.
    """
    stored = snapshots.catalog()
    one, other = _side(a, "a", stored), _side(b, "b", stored)
    ours, theirs = one.entry, other.entry
    if _is_loadout(one) or _is_loadout(other):
        settings = _OF_A_LOADOUT
        if keys.fold(one.loadout) == keys.fold(other.loadout):
            # Its own or its kind's: it is the same in force.
            settings = ()
    else:
        settings = comparing.SETTINGS if one.key == other.key else _OF_TWO_AGENTS
    rows = belts.differences(ours, theirs, settings)
    states, others = one.resolved.everything(), other.resolved.everything()
    return Comparison(
        a=one,
        b=other,
        rows=rows,
        outcomes=tuple(
            Outcome(tool=stored.tools[key], a=states[key], b=others[key])
            for key in states
            if states[key].state != others[key].state
        ),
        lost=frozenset(row.id for row in rows if _is_lost(stored, row)),
    )


def loadouts_there() -> tuple[str, ...]:
    """Name the loadouts that there are to compare with."""
    return loadouts.all_names(snapshots.catalog())


def spell(key: str, at: past.Moment | None) -> str:
    """Write a version of an agent as :func:`compare` reads it."""
    if at is None:
        return key
    return f"{key}@{at.isoformat() if isinstance(at, dt.datetime) else at}"


def read(name: str, path: str) -> tuple[str, past.Moment | None]:
    """Read which agent a side is, and as it was when. Raises errors.Invalid, with ``path``."""
    key, found, at = name.partition("@")
    if not found:
        return key, None
    return key, moment(at, path)


def moment(text: str, path: str) -> past.Moment:
    """Read the id of an audit entry, or a point in time (of the server's zone, where it names none)."""
    if text.isascii() and text.isdigit():
        return int(text[:20])
    try:
        found = dt.datetime.fromisoformat(text)
    except ValueError as error:
        message = f"{text!r} is no moment: give the number of a change, or a time such as 2026-11-20T09:30."
        raise errors.Invalid([errors.Problem(path=path, message=message)]) from error
    return _in_zone(found, text, path)


def _in_zone(found: dt.datetime, text: str, path: str) -> dt.datetime:
    try:
        aware = found if timezone.is_aware(found) else timezone.make_aware(found)
        # Of the first and the last day that there are, not every hour can be said in another zone: the database's is
        # UTC, and it is shown in the server's.
        _ = aware.astimezone(dt.UTC), timezone.localtime(aware)
        return aware
    except (ValueError, OverflowError) as error:
        raise errors.Invalid([errors.Problem(path=path, message=f"{text!r} is no moment.")]) from error


def _side(name: str, path: str, stored: catalog.Catalog) -> Side:
    if name.startswith(_LOADOUT):
        return _of_loadout(name.removeprefix(_LOADOUT), stored)
    key, at = read(name, path)
    if not key.isprintable():
        raise errors.NotFound("agent", key)
    found = snapshots.find(key, None)
    version = None if at is None else past.of(found, at)
    agent = found.agent if version is None else version.agent
    return Side(
        name=name,
        key=key,
        loadout=agent.loadout_name(conf.KIND_LOADOUTS),
        entry=belts.entry("agent", agent) if version is None else version.entry,
        version=version,
        resolved=_resolved(found.catalog, agent),
    )


def _of_loadout(name: str, stored: catalog.Catalog) -> Side:
    if not loadouts.exists(stored.loadouts, name):
        raise errors.NotFound("loadout", name, loadouts.all_names(stored))
    return Side(
        name=f"{_LOADOUT}{name}",
        key="",
        loadout=name,
        entry={"loadout": name},
        version=None,
        resolved=_resolved(stored, agents.Agent(key="", loadout=name)),
    )


def _is_loadout(side: Side) -> bool:
    return not side.key


def _resolved(stored: catalog.Catalog, agent: agents.Agent) -> budgets.Resolution:
    return budgets.resolve(resolution.Snapshot(catalog=stored, agent=agent, kind_loadouts=conf.KIND_LOADOUTS))


def _is_lost(stored: catalog.Catalog, row: belts.Row) -> bool:
    if row.a is None:
        return False
    match row.part:
        case "switch":
            end = grants.moment(row.a.get("ends")) if isinstance(row.a, Mapping) else None
            if end is not None and end <= timezone.now():
                return True
            return row.name not in stored.toolkits and row.name not in stored.tools
        case "always-on":
            return row.name not in stored.tools
        case "loadable":
            return row.name not in stored.toolkits
        case "setting" if row.name == "loadout":
            return not loadouts.exists(stored.loadouts, str(row.a))
    return False
