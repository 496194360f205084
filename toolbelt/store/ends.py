"""Which switches and overrides end, and when? (semantics: Revisions)

Whether one is over is never asked here: whoever reads an agent compares its ends with the time. This is for those who
wait for an end, and for those who write down what is over.
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
class Over:
    """What ended and still stands in its row: a ``switch`` or an ``override`` of an agent, on or off until its end."""

    agent: str
    family: str
    key: str
    on: bool
    end: consumers.End


def over(now: dt.datetime, agent: str = "") -> list[Over]:
    """Give what is over at this moment and not written down yet, of one agent or of all, what ended last first."""
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
    found = [
        Over(agent=whose, family=family, key=key, on=on, end=consumers.End(at=at, then=then, by=by))
        for whose, family, key, on, at, then, by in switches.union(overrides, all=True)
    ]
    return sorted(found, key=lambda one: (one.end.at, one.agent, one.key), reverse=True)


def due(now: dt.datetime) -> list[str]:
    """Name the agents of which something is over at this moment and still stands in its row, in order."""
    found: set[str] = set()
    for grant in _GRANTS:
        found.update(grant._default_manager.filter(ends__lte=now).values_list("agent__key", flat=True))
    return sorted(found)


def next_ends(now: dt.datetime, agents: Collection[str] | None = None) -> dict[str, dt.datetime]:
    """Give the first moment after this one at which something of an agent ends, by the keys of those agents of which
    something does; of all agents, or of these.
    """
    found: dict[str, dt.datetime] = {}
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
            found[key] = min(ends, found.get(key, ends))
    return found
