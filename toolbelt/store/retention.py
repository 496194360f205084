"""Numbers and ages of rows that accumulate, for operators who prune them."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from django.db import models as orm

from toolbelt import models


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionStats:
    """The number of rows, and the age of the oldest; None if there are none."""

    count: int
    oldest: dt.datetime | None


def calls() -> RetentionStats:
    """Return the statistics of call records."""
    return _of(models.CallRecord.objects.all(), "at")


def changes() -> RetentionStats:
    """Return the statistics of the audit log."""
    return _of(models.AuditEntry.objects.all(), "at")


def sessions() -> RetentionStats:
    """Return the statistics of the agents' sessions."""
    return _of(models.AgentSession.objects.all(), "changed")


def _of(rows: orm.QuerySet[orm.Model], column: str) -> RetentionStats:
    result = rows.order_by().aggregate(count=orm.Count("pk"), oldest=orm.Min(column))
    return RetentionStats(count=result["count"], oldest=result["oldest"])
