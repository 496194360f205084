"""Expiries of switches and overrides (docs/concepts.md: Revisions).

An agent's expiries take effect when the agent is read. This module is for code that waits for the next expiry, and for
code that records expiries.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from dataclasses import dataclass

from django.db import models as orm

from toolbelt import models
from toolbelt.core import agents as consumers

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
