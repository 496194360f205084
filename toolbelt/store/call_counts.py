"""How many calls rules have counted. Each count is changed by one statement, which also checks its limit, so that any
number of processes count correctly.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from django.db import models as orm

from toolbelt import models
from toolbelt.store import clock

# How many expired counts are deleted for each new one, so that no other job has to.
_DELETED_AT_ONCE = 50
# How long they are kept, for processes whose clock is late.
_KEPT = dt.timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCount:
    """A count that is running: whose calls, how many, and when they are counted again."""

    subject: str
    calls: int
    resets: dt.datetime


def calls(rule: str, subject: str, resets: dt.datetime) -> int:
    """Return how many calls were counted."""
    found = _rows(rule, subject, resets).values_list("calls", flat=True).first()
    return found or 0


def add(rule: str, subject: str, resets: dt.datetime, *, calls: int = 1, limit: int | None = None) -> bool:
    """Count calls in the current transaction; return False, and count none, if that would exceed the limit."""
    if _add(rule, subject, resets, calls, limit):
        return True
    # The first one of its time, perhaps of several processes at once.
    new = models.CallCount(rule=rule, subject=subject, resets=resets)
    models.CallCount.objects.bulk_create([new], ignore_conflicts=True)
    over = models.CallCount.objects.filter(resets__lt=clock.now() - _KEPT).order_by("resets")
    if oldest := list(over.values_list("pk", flat=True)[:_DELETED_AT_ONCE]):
        models.CallCount.objects.filter(pk__in=oldest).delete()
    return _add(rule, subject, resets, calls, limit)


def running(rule: str, now: dt.datetime, maximum: int) -> list[StoredCount]:
    """Return the counts of a rule that are running, the highest first."""
    rows = models.CallCount.objects.filter(rule=rule, resets__gt=now).order_by("-calls", "subject")[:maximum]
    return [StoredCount(subject=row.subject, calls=row.calls, resets=row.resets) for row in rows]


def _add(rule: str, subject: str, resets: dt.datetime, calls: int, limit: int | None) -> bool:
    rows = _rows(rule, subject, resets)
    if limit is not None:
        rows = rows.filter(calls__lte=limit - calls)
    return bool(rows.update(calls=orm.F("calls") + calls))


def _rows(rule: str, subject: str, resets: dt.datetime) -> orm.QuerySet[models.CallCount]:
    return models.CallCount.objects.filter(rule=rule, subject=subject, resets=resets)
