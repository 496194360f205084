"""Days in the installation's time zone, computed by the database.

On SQLite, Django computes the day in Python for each row and each use in a query, which takes longer than everything
else in the statistics. SQLite can add minutes itself, with the same result, because the changes of the clock in a
period are known.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

from django.db.models import functions
from django.utils import timezone

# For longer periods, finding the changes of the clock is slow: Django's own way is used.
MAX_SPAN = dt.timedelta(days=800)
_DAY, _MINUTE = dt.timedelta(days=1), dt.timedelta(minutes=1)


def of(column: str, since: dt.datetime | None, until: dt.datetime | None = None) -> functions.TruncDate:
    """Return an expression for the day of a column whose times are from ``since`` to ``until`` (default: now)."""
    until = until or timezone.now() + _DAY
    if since is None or not dt.timedelta(0) <= until - since <= MAX_SPAN:
        return functions.TruncDate(column)
    return Day(column, tuple(offsets(timezone.get_current_timezone(), since, until)))


def offsets(zone: dt.tzinfo, since: dt.datetime, until: dt.datetime) -> Iterator[tuple[dt.datetime, int]]:
    """Yield the minutes by which the clock is ahead of UTC, and until when: for each change, and for the end."""
    moment = since.astimezone(dt.UTC)
    while moment < until:
        later = min(moment + _DAY, until.astimezone(dt.UTC))
        if _ahead(zone, moment) != _ahead(zone, later):
            yield _change(zone, moment, later), _ahead(zone, moment)
        moment = later
    yield until, _ahead(zone, until)


class Day(functions.TruncDate):
    """The day of a time, computed by SQLite itself; PostgreSQL does so anyway."""

    def __init__(self, expression: Any, ahead: tuple[tuple[dt.datetime, int], ...], **extra: Any) -> None:
        super().__init__(expression, **extra)
        self.ahead = ahead

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> tuple[str, tuple[Any, ...]]:
        """Return the SQL for SQLite."""
        column, column_params = compiler.compile(self.lhs)
        *before, (_, last) = self.ahead
        sql, params = "", []
        for until, minutes in before:
            sql += f"WHEN {column} < %s THEN date({column}, %s) "
            params += [
                *column_params,
                connection.ops.adapt_datetimefield_value(until),
                *column_params,
                f"{minutes:+} minutes",
            ]
        day = f"date({column}, %s)"
        params += [*column_params, f"{last:+} minutes"]
        return (f"CASE {sql}ELSE {day} END" if before else day), tuple(params)


def _ahead(zone: dt.tzinfo, moment: dt.datetime) -> int:
    return round((moment.astimezone(zone).utcoffset() or dt.timedelta(0)) / _MINUTE)


def _change(zone: dt.tzinfo, moment: dt.datetime, later: dt.datetime) -> dt.datetime:
    """Return the minute in which the clock changes, which it does once between these two times."""
    early, late = moment.replace(second=0, microsecond=0), later
    while late - early > _MINUTE:
        midpoint = early + (late - early) // (2 * _MINUTE) * _MINUTE
        early, late = (
            (midpoint, late) if _ahead(zone, midpoint) == _ahead(zone, moment) else (early, midpoint)
        )
    return late.replace(second=0, microsecond=0)
