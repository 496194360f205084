"""Hours since a time, computed by the database.

They are counted from an instant, not read from a clock, so that a day on which the clock changes has each of its 23 or
25 hours once, in any time zone.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.db import models as orm

_SECONDS = 3600


class HoursSince(orm.Func):
    """The number of whole hours from ``since`` until a column's time; ``since`` must not be later."""

    output_field = orm.IntegerField()
    arity = 1

    def __init__(self, column: Any, since: dt.datetime, **extra: Any) -> None:
        super().__init__(column, **extra)
        self.seconds = int(since.timestamp())

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> tuple[str, tuple[Any, ...]]:
        """Return the SQL for SQLite, whose integers divide to integers."""
        column, params = compiler.compile(self.source_expressions[0])
        return (
            f"((CAST(strftime('%%s', {column}) AS INTEGER) - {self.seconds}) / {_SECONDS})",
            tuple(params),
        )

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> tuple[str, tuple[Any, ...]]:
        """Return the SQL for PostgreSQL."""
        column, params = compiler.compile(self.source_expressions[0])
        return (
            f"FLOOR((EXTRACT(EPOCH FROM {column}) - {self.seconds}) / {_SECONDS})::integer",
            tuple(params),
        )
