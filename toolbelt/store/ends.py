"""Which switches and overrides end, and when? (semantics: Revisions)

Whether one is over is never asked here: whoever reads an agent compares its ends with the time. This is for those who
wait for an end, and for those who write down what is over.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection

from django.db import models as orm

from toolbelt import models

_GRANTS: tuple[type[orm.Model], ...] = (models.ToolkitSwitch, models.ToolOverride)


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
