"""The row of the last self-check."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from toolbelt import models


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How many recorded calls a replay decided again, and for the same reason.

    ``uncertain`` are calls before something was written around the audit log, or without the facts that decide.
    ``mismatches`` are the ids of calls that the replay decided otherwise. ``at`` is when it was made.
    """

    at: dt.datetime
    days: int
    revisions: int
    calls: int
    reproduced: int
    uncertain: int
    mismatches: tuple[int, ...]


_FIELDS = tuple(Result.__dataclass_fields__)


def find() -> Result | None:
    """Return the last result; None if there is none."""
    row = models.SelfCheck.objects.values(*_FIELDS).first()
    return Result(**{**row, "mismatches": tuple(row["mismatches"])}) if row is not None else None


def store(result: Result) -> None:
    """Store it as the last result."""
    fields = {name: getattr(result, name) for name in _FIELDS}
    models.SelfCheck.objects.update_or_create(
        pk=1, defaults={**fields, "mismatches": list(result.mismatches)}
    )
