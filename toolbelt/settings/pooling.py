"""The connections in the pool of PostgreSQL: they say why one could not be made, and a dead one takes others along."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import psycopg
import psycopg_pool


class Connection(psycopg.Connection[Any]):
    """A connection of the pool. ``refusal`` is why the last one could not be made; None where it could."""

    refusal: ClassVar[psycopg.Error | None] = None

    @classmethod
    def connect(cls, *arguments: Any, **options: Any) -> Self:
        """Connect, and remember what came of it: the pool itself only says that it took too long."""
        try:
            made = super().connect(*arguments, **options)
        except psycopg.Error as error:
            cls.refusal = error
            raise
        cls.refusal = None
        return made

    def execute(self, *arguments: Any, **options: Any) -> Any:
        """Execute; the pool does so, to check a connection before it hands it out.

        A dead connection is seldom alone: after a restart of the server all are dead, and to try one after the other
        would take the pool seconds.
        """
        try:
            return super().execute(*arguments, **options)
        except psycopg.OperationalError:
            if self.closed and isinstance(self._pool, psycopg_pool.ConnectionPool):
                self._pool.drain()
            raise
