"""How much is kept of what grows by itself, and since when? For those who prune it."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from django.db import models as orm

from toolbelt import models


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """How many rows there are, and how old the first of them is; None where there is none."""

    count: int
    oldest: dt.datetime | None


def calls() -> Kept:
    """Look at the records of calls."""
    return _of(models.CallRecord.objects.all(), "at")


def changes() -> Kept:
    """Look at the audit log."""
    return _of(models.AuditEntry.objects.all(), "at")


def sessions() -> Kept:
    """Look at the agents' sessions."""
    return _of(models.AgentSession.objects.all(), "changed")


def _of(rows: orm.QuerySet[orm.Model], column: str) -> Kept:
    found = rows.order_by().aggregate(count=orm.Count("pk"), oldest=orm.Min(column))
    return Kept(count=found["count"], oldest=found["oldest"])
