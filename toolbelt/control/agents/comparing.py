"""Comparison of two agents, of an agent and a loadout, or of an agent and its past: settings, and the decisions that
result. Nothing here writes.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from toolbelt import conf
from toolbelt.control import past
from toolbelt.control.agents import agent_versions
from toolbelt.core import agents, belts, catalog, errors, grants, keys, loadouts
from toolbelt.core.belts import comparing
from toolbelt.core.rules import budgets, resolution
from toolbelt.store import snapshots

_LOADOUT = "loadout:"
# A loadout's only setting is itself.
_LOADOUT_SETTINGS: tuple[str, ...] = ("loadout",)
_AGENT_SETTINGS = tuple(name for name in comparing.SETTINGS if name not in comparing.IDENTITY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side of a comparison. ``version`` is set for a past agent; ``key`` is empty for a loadout.

    ``loadout`` is the one in force. ``resolved`` is the resolution outside any session.
    """

    name: str
    key: str
    loadout: str
    entry: Mapping[str, Any]
    version: agent_versions.Version | None
    resolved: budgets.Resolution

    @property
    def is_now(self) -> bool:
        """Return whether it is an agent as it is now, to which rows can be copied."""
        return bool(self.key) and self.version is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One tool whose state differs between the sides."""

    tool: catalog.Tool
    a: resolution.Decision
    b: resolution.Decision


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Both sides, their differences, and the tools whose state differs, in the order of their keys.

    ``not_copyable`` are the ids of rows that cannot be copied, because what they name on side ``a`` no longer exists or
    has expired.
    """

    a: Side
    b: Side
    rows: tuple[belts.Row, ...]
    outcomes: tuple[Outcome, ...]
    not_copyable: frozenset[str]


def compare(a: str, b: str) -> Comparison:
    """Compare two sides: ``ada``; ``loadout:developer``; ``ada@12``, as it was after audit entry 12; or
    ``ada@2026-11-20T09:30``, the agent at that time. Raise errors.NotFound or errors.Invalid.
    """
    stored = snapshots.catalog()
    left, right = _side(a, "a", stored), _side(b, "b", stored)
    ours, theirs = left.entry, right.entry
    if _is_loadout(left) or _is_loadout(right):
        settings = _LOADOUT_SETTINGS
        if keys.fold(left.loadout) == keys.fold(right.loadout):
            # Set by the agent or by its kind, the loadout in force is the same.
            settings = ()
    else:
        settings = comparing.SETTINGS if left.key == right.key else _AGENT_SETTINGS
    rows = belts.differences(ours, theirs, settings)
    states, others = left.resolved.all_decisions(), right.resolved.all_decisions()
    return Comparison(
        a=left,
        b=right,
        rows=rows,
        outcomes=tuple(
            Outcome(tool=stored.tools[key], a=states[key], b=others[key])
            for key in states
            if states[key].state != others[key].state
        ),
        not_copyable=frozenset(row.id for row in rows if _cannot_be_copied(stored, row)),
    )


def loadout_names() -> tuple[str, ...]:
    """Return the names of the loadouts to compare with."""
    return loadouts.all_names(snapshots.catalog())


def format_version(key: str, at: agent_versions.Moment | None) -> str:
    """Return a version of an agent as text that :func:`compare` reads."""
    if at is None:
        return key
    return f"{key}@{at.isoformat() if isinstance(at, dt.datetime) else at}"


def parse_version(name: str, path: str) -> tuple[str, agent_versions.Moment | None]:
    """Return the agent and the moment of a side; raise errors.Invalid with ``path``."""
    key, has_moment, at = name.partition("@")
    if not has_moment:
        return key, None
    return key, past.parse(at, path)


def _side(name: str, path: str, stored: catalog.Catalog) -> Side:
    if name.startswith(_LOADOUT):
        return _of_loadout(name.removeprefix(_LOADOUT), stored)
    key, at = parse_version(name, path)
    if not key.isprintable():
        raise errors.NotFound("agent", key)
    current = snapshots.find(key, None)
    version = None if at is None else agent_versions.rebuild(key, at)
    agent = current.agent if version is None else version.agent
    return Side(
        name=name,
        key=key,
        loadout=agent.loadout_name(conf.KIND_LOADOUTS),
        entry=belts.entry("agent", agent) if version is None else version.entry,
        version=version,
        # With today's catalog, also of a past version: it is compared to be restored.
        resolved=budgets.resolve(snapshots.of(current.catalog, agent)),
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
        resolved=budgets.resolve(snapshots.of(stored, agents.Agent(key="", loadout=name))),
    )


def _is_loadout(side: Side) -> bool:
    return not side.key


def _cannot_be_copied(stored: catalog.Catalog, row: belts.Row) -> bool:
    if row.a is None:
        return False
    match row.part:
        case "switch":
            end = grants.parse_time(row.a.get("ends")) if isinstance(row.a, Mapping) else None
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
