"""Work that a server does again and again in the background."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Repeating:
    """A background thread, for servers: it does the work, and does it again after the seconds that the work returns.

    It does not begin immediately, but after the ``first`` seconds, because a starting server has other work. The work
    handles its errors itself.
    """

    def __init__(self, name: str, work: Callable[[], float], first: float) -> None:
        self._name, self._work, self._first = name, work, first
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
        seconds = self._first
        while not stopping.wait(seconds):
            seconds = self._work()
