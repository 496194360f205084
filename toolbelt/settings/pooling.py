"""The connections in the PostgreSQL pool: they record why connecting failed, and a dead one empties the pool."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import psycopg
import psycopg_pool


class Connection(psycopg.Connection[Any]):
    """A connection of the pool. ``refusal`` is the error of the last attempt to connect; None if it succeeded."""

    refusal: ClassVar[psycopg.Error | None] = None

    @classmethod
    def connect(cls, *arguments: Any, **options: Any) -> Self:
        """Connect, and record the error, because the pool itself only reports a timeout."""
        try:
            connection = super().connect(*arguments, **options)
        except psycopg.Error as error:
            cls.refusal = error
            raise
        cls.refusal = None
        return connection

    def execute(self, *arguments: Any, **options: Any) -> Any:
        """Execute a statement. The pool uses this to check a connection before handing it out.

        If one connection is dead, so are usually all others, because the server was restarted. Trying each of them
        would take the pool seconds.
        """
        try:
            return super().execute(*arguments, **options)
        except psycopg.OperationalError:
            if self.closed and isinstance(self._pool, psycopg_pool.ConnectionPool):
                self._pool.drain()
            raise
