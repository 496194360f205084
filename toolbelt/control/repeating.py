"""Work that a server does again and again in the background."""

from __future__ import annotations

import threading
from collections.abc import Callable

import structlog
from django.db import connections

_log = structlog.get_logger(__name__)


class Repeating:
    """A background thread, for servers, that does the work each ``seconds``, or when the work says: it may return after
    how many seconds it is to be done again.

    It does not begin immediately, because a starting server has other work. An error is logged as ``failure``, and the
    work is done again.
    """

    def __init__(self, name: str, work: Callable[[], float | None], seconds: float, failure: str) -> None:
        self._name, self._work, self._seconds, self._failure = name, work, seconds, failure
        self._stopping: threading.Event | None = None

    def start(self) -> None:
        """Start the thread, once, until :meth:`stop`."""
        if self._stopping is None:
            self._stopping = threading.Event()
            threading.Thread(target=self._repeat, args=[self._stopping], name=self._name, daemon=True).start()

    def stop(self) -> None:
        """Stop the thread; it completes what it has begun to write, and callers need not wait."""
        if self._stopping is not None:
            self._stopping.set()
            self._stopping = None

    def _repeat(self, stopping: threading.Event) -> None:
        seconds = self._seconds
        while not stopping.wait(seconds):
            seconds = self._once() or self._seconds

    def _once(self) -> float | None:
        try:
            return self._work()
        except Exception:
            _log.exception(self._failure)
            return None
        finally:
            connections.close_all()
