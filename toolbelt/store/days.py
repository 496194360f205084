"""On which day was a moment, by the clock of the installation?

For SQLite, Django asks Python, row by row and wherever a query names the day, which takes longer than all else in
adding up calls. SQLite can add minutes itself, and says the same, for it is known when in a period the clock was put
forward or back.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

from django.db.models import functions
from django.utils import timezone

# Above so many days, looking for changes of the clock is no longer cheap: Django's own way has to do.
LONGEST = dt.timedelta(days=800)
_DAY, _MINUTE = dt.timedelta(days=1), dt.timedelta(minutes=1)


def of(column: str, since: dt.datetime | None, until: dt.datetime | None = None) -> functions.TruncDate:
    """Give the day of a column whose moments are from ``since`` to ``until`` (now)."""
    until = until or timezone.now() + _DAY
    if since is None or not dt.timedelta(0) <= until - since <= LONGEST:
        return functions.TruncDate(column)
    return Day(column, tuple(offsets(timezone.get_current_timezone(), since, until)))


def offsets(zone: dt.tzinfo, since: dt.datetime, until: dt.datetime) -> Iterator[tuple[dt.datetime, int]]:
    """Say how many minutes the clock is ahead of UTC, and until when: once for each change, and once at the end."""
    moment = since.astimezone(dt.UTC)
    while moment < until:
        later = min(moment + _DAY, until.astimezone(dt.UTC))
        if _ahead(zone, moment) != _ahead(zone, later):
            yield _change(zone, moment, later), _ahead(zone, moment)
        moment = later
    yield until, _ahead(zone, until)


class Day(functions.TruncDate):
    """The day of a moment, told by SQLite itself; PostgreSQL can anyway."""

    def __init__(self, expression: Any, ahead: tuple[tuple[dt.datetime, int], ...], **extra: Any) -> None:
        super().__init__(expression, **extra)
        self.ahead = ahead

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> tuple[str, tuple[Any, ...]]:
        """Write it as SQLite understands it."""
        column, given = compiler.compile(self.lhs)
        *before, (_, last) = self.ahead
        sql, params = "", []
        for until, minutes in before:
            sql += f"WHEN {column} < %s THEN date({column}, %s) "
            params += [
                *given,
                connection.ops.adapt_datetimefield_value(until),
                *given,
                f"{minutes:+} minutes",
            ]
        day = f"date({column}, %s)"
        params += [*given, f"{last:+} minutes"]
        return (f"CASE {sql}ELSE {day} END" if before else day), tuple(params)


def _ahead(zone: dt.tzinfo, moment: dt.datetime) -> int:
    return round((moment.astimezone(zone).utcoffset() or dt.timedelta(0)) / _MINUTE)


def _change(zone: dt.tzinfo, moment: dt.datetime, later: dt.datetime) -> dt.datetime:
    """Find the minute in which the clock changes, which it does once between these two."""
    early, late = moment.replace(second=0, microsecond=0), later
    while late - early > _MINUTE:
        middle = early + (late - early) // (2 * _MINUTE) * _MINUTE
        early, late = (middle, late) if _ahead(zone, middle) == _ahead(zone, moment) else (early, middle)
    return late.replace(second=0, microsecond=0)
