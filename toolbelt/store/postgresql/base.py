"""Django's PostgreSQL backend with a pool that reserves some connections for operators.

However many agents make requests at once, an operator's flip or block finds a connection.
:data:`toolbelt.store.databases.FOR_AN_AGENT` tells on whose behalf a connection is taken.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from django.db.backends.postgresql import base
from psycopg_pool import PoolTimeout

from toolbelt.store import databases

# One of this many connections of the pool is reserved for operators.
RESERVED_DIVISOR = 5
# How long no request waits for a connection after one could not be opened, in seconds.
PAUSE_SECONDS = 3.0


def reserved(size: int) -> int:
    """Return the number of a pool's connections that are reserved for operators: at least one, if there are two."""
    return max(1, size // RESERVED_DIVISOR) if size > 1 else 0


class DatabaseWrapper(base.DatabaseWrapper):
    """Takes its connection from the pool on behalf of an agent or of an operator."""

    # The number of connections that agents may use at a time, for each pool by its alias.
    _shares: dict[str, threading.BoundedSemaphore] = {}
    _making = threading.Lock()
    # Until when waiting is pointless, on the monotonic clock, for each pool by its alias.
    _not_before: dict[str, float] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._share: threading.BoundedSemaphore | None = None

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Return a connection; raise OperationalError if none is free in time."""
        if self.pool is None:
            return super().get_new_connection(conn_params)
        if not databases.FOR_AN_AGENT.get():
            return self._take(conn_params)
        share = self._agents_share(self.pool.max_size)
        seconds = self.pool.timeout / 2  # the wait for the pool follows
        if not share.acquire(timeout=seconds):
            raise PoolTimeout(f"couldn't get a connection for an agent after {seconds:.2f} sec")
        try:
            connection = self._take(conn_params)
        except BaseException:
            share.release()
            raise
        self._share = share
        return connection

    def _take(self, conn_params: dict[str, Any]) -> Any:
        """Take a connection from the pool. If the server does not let anyone in, fail at once for a moment: a request
        that waited for its share, or makes several queries, would otherwise wait again each time.
        """
        is_refused = getattr(self.pool.connection_class, "refusal", None) is not None
        if is_refused and time.monotonic() < self._not_before.get(self.alias, 0.0):
            raise PoolTimeout("couldn't get a connection a moment ago")
        try:
            return super().get_new_connection(conn_params)
        except PoolTimeout:
            self._not_before[self.alias] = time.monotonic() + PAUSE_SECONDS
            raise

    def _close(self) -> None:
        try:
            super()._close()  # type: ignore[misc]
        finally:
            share, self._share = self._share, None
            if share is not None:
                share.release()

    def _agents_share(self, size: int) -> threading.BoundedSemaphore:
        with self._making:
            if self.alias not in self._shares:
                self._shares[self.alias] = threading.BoundedSemaphore(size - reserved(size))
            return self._shares[self.alias]
