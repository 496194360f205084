"""Expiries of switches, overrides and blocks (docs/concepts.md: Revisions).

They take effect when the agent or the catalog is read. This module is for code that waits for the next expiry, and for
code that records expiries.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from django.db import models as orm

from toolbelt import models
from toolbelt.core import agents as consumers

# The rows that can be blocked, and the column that names each.
_BLOCKABLE: Mapping[str, tuple[type[orm.Model], str]] = {
    "plugin": (models.Plugin, "name"),
    "toolkit": (models.Toolkit, "key"),
    "tool": (models.Tool, "key"),
}
_GRANTS: tuple[type[orm.Model], ...] = (models.ToolkitSwitch, models.ToolOverride)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expired:
    """An expired grant that is still stored: a ``switch`` or an ``override`` of an agent."""

    agent: str
    family: str
    key: str
    on: bool
    end: consumers.End


def expired(now: dt.datetime, agent: str = "") -> list[Expired]:
    """Return the expired grants that are not recorded yet, of one agent or of all, the latest first."""
    switches, overrides = (
        grant._default_manager.filter(ends__lte=now, **({"agent__key": agent} if agent else {}))
        .order_by()
        .annotate(family=orm.Value(family))
        .values_list("agent__key", "family", key, "on", "ends", "then", "by")
        for family, grant, key in (
            ("switch", models.ToolkitSwitch, "toolkit__key"),
            ("override", models.ToolOverride, "tool__key"),
        )
    )
    items = [
        Expired(agent=whose, family=family, key=key, on=on, end=consumers.End(at=at, then=then, by=by))
        for whose, family, key, on, at, then, by in switches.union(overrides, all=True)
    ]
    return sorted(items, key=lambda item: (item.end.at, item.agent, item.key), reverse=True)


def due(now: dt.datetime) -> list[str]:
    """Return the agents with expiries that are not recorded yet, in order."""
    keys: set[str] = set()
    for grant in _GRANTS:
        keys.update(grant._default_manager.filter(ends__lte=now).values_list("agent__key", flat=True))
    return sorted(keys)


def next_ends(now: dt.datetime, agents: Collection[str] | None = None) -> dict[str, dt.datetime]:
    """Return the next expiry of each agent that has one after this time; of all agents, or of these."""
    by_agent: dict[str, dt.datetime] = {}
    for grant in _GRANTS:
        rows = grant._default_manager.filter(ends__gt=now)
        if agents is not None:
            rows = rows.filter(agent__key__in=agents)
        for key, ends in (
            rows.order_by()
            .values("agent__key")
            .annotate(next=orm.Min("ends"))
            .values_list("agent__key", "next")
        ):
            by_agent[key] = min(ends, by_agent.get(key, ends))
    return by_agent


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedBlock:
    """A block that has ended and is still stored: of a ``plugin``, a ``toolkit`` or a ``tool``."""

    kind: str
    name: str
    at: dt.datetime


def ended_blocks(now: dt.datetime, kind: str = "", name: str = "") -> list[EndedBlock]:
    """Return the ended blocks that are not recorded yet, of one entry or of all, the first first."""
    ended = [
        EndedBlock(kind=kind_, name=whose, at=at)
        for kind_, (model, column) in _BLOCKABLE.items()
        if kind in ("", kind_)
        for whose, at in model._default_manager.filter(
            blocked=True, block_ends__lte=now, **({column: name} if name else {})
        )
        .order_by()
        .values_list(column, "block_ends")
    ]
    return sorted(ended, key=lambda block: (block.at, block.kind, block.name))


def unblock(block: EndedBlock) -> None:
    """Store that a block has ended."""
    model, column = _BLOCKABLE[block.kind]
    model._default_manager.filter(**{column: block.name}).update(blocked=False, block_ends=None)


def next_block_end(now: dt.datetime) -> dt.datetime | None:
    """Return when the next block ends."""
    ends = [
        model._default_manager.filter(block_ends__gt=now).aggregate(next=orm.Min("block_ends"))["next"]
        for model, _ in _BLOCKABLE.values()
    ]
    return min((at for at in ends if at is not None), default=None)
