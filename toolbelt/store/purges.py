"""Purges: what must leave every conversation that began before."""

from __future__ import annotations

import datetime as dt

from toolbelt import models
from toolbelt.store import clock


def numbers() -> dict[str, int]:
    """Return the number of each purge, by its kind and name: ``tool fetch``. A later purge has a higher number."""
    rows = models.Purge.objects.values_list("kind", "name", "at")
    return {f"{kind} {name}": _number(at) for kind, name, at in rows}


def find(kind: str, name: str) -> dt.datetime | None:
    """Return when something was last purged; None if it never was."""
    return models.Purge.objects.filter(kind=kind, name=name).values_list("at", flat=True).first()


def put(kind: str, name: str) -> dt.datetime:
    """Store the purge, later than every other one, and return its time. Within the write that it belongs to."""
    last = models.Purge.objects.order_by("-at").values_list("at", flat=True).first()
    now = clock.now()
    at = now if last is None else max(now, last + dt.timedelta(microseconds=1))
    restore(kind, name, at)
    return at


def restore(kind: str, name: str, at: dt.datetime | None) -> None:
    """Set when something was last purged; None: it never was."""
    if at is None:
        models.Purge.objects.filter(kind=kind, name=name).delete()
    else:
        models.Purge.objects.update_or_create(kind=kind, name=name, defaults={"at": at})


def _number(at: dt.datetime) -> int:
    return (at - dt.datetime.fromtimestamp(0, dt.UTC)) // dt.timedelta(microseconds=1)
