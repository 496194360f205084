"""The connections in the PostgreSQL pool: they record why connecting failed, a dead one empties the pool, and none
waits for a server that has stopped answering.

A server that hangs does not enforce its own limits on statements, and a slow statement looks the same from here.
Therefore a statement that takes long continues for as long as the server still answers those who connect.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from typing import Any, ClassVar, Self, TypeVar

import psycopg
import psycopg_pool

T = TypeVar("T")

# How long a statement runs before the server is asked whether it still answers, and how long its answer counts.
PATIENCE_SECONDS, VALID_SECONDS = 0.5, 1.0
# How long the server may take to answer. The client library waits for at least 2 seconds.
ANSWER_SECONDS = 2


class Watch:
    """Whether the server answers those who connect; asked by one thread at a time, and known to the others."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._known_until = 0.0
        self._error: psycopg.Error | None = None

    def note(self, error: psycopg.Error | None) -> None:
        """Record how an attempt to connect ended. Any answer counts, even a refusal."""
        self._error = error if isinstance(error, psycopg.errors.ConnectionTimeout) else None
        self._known_until = self._now() + VALID_SECONDS

    def check(self, connect: Callable[[], Any]) -> None:
        """Raise the error if the server does not answer."""
        with self._lock:
            if self._now() >= self._known_until:
                try:
                    connect()
                except psycopg.Error as error:
                    self.note(error)
                else:
                    self.note(None)
            if self._error is not None:
                raise psycopg.OperationalError("The server does not answer.") from self._error

    def watched(self, work: Generator[Any, Any, T], connect: Callable[[], Any]) -> Generator[Any, Any, T]:
        """Run the work of a statement; raise OperationalError once the server does not answer any more."""
        due = self._now() + PATIENCE_SECONDS
        try:
            state = next(work)
            while True:
                ready = yield state
                if not ready and self._now() >= due:
                    self.check(connect)
                    due = self._now() + PATIENCE_SECONDS
                state = work.send(ready)
        except StopIteration as end:
            result: T = end.value
            return result


class Connection(psycopg.Connection[Any]):
    """A connection of the pool. ``refusal`` is the error of the last attempt to connect; None if it succeeded."""

    refusal: ClassVar[psycopg.Error | None] = None
    watch: ClassVar[Watch] = Watch()
    # The arguments of the last attempt to connect.
    _arguments: ClassVar[tuple[tuple[Any, ...], dict[str, Any]]] = (), {}

    @classmethod
    def connect(cls, *arguments: Any, **options: Any) -> Self:
        """Connect, and record the error, because the pool itself only reports a timeout."""
        cls._arguments = arguments, options
        try:
            connection = super().connect(*arguments, **options)
        except psycopg.Error as error:
            cls.refusal = error
            cls.watch.note(error)
            raise
        cls.refusal = None
        return connection

    def wait(self, gen: Generator[Any, Any, T], *arguments: Any, **options: Any) -> T:
        """Wait for a statement, as long as the server answers. Otherwise close the connection and raise its error."""
        connecting, connect_options = self._arguments

        def connect_again() -> None:
            psycopg.connect(*connecting, **{**connect_options, "connect_timeout": ANSWER_SECONDS}).close()

        try:
            return super().wait(self.watch.watched(gen, connect_again), *arguments, **options)
        except psycopg.OperationalError as error:
            if isinstance(error.__cause__, psycopg.errors.ConnectionTimeout):
                type(self).refusal = error
                self.close()
            raise

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
