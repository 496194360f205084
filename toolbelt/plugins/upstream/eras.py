"""How a connection to a server begins, which this process remembers until an operator refreshes it or its connection
changes.

A new connection is probed for the stateless revision. Some servers end, hang or break when they are probed, and are
initialized at once; others only speak HTTP+SSE, the transport of MCP 2024-11-05.
"""

from __future__ import annotations

import asyncio
from typing import Any, Literal

from toolbelt.core import caches, connections

_MAX = 10_000

Beginning = Literal["probed", "initialized", "http-sse"]

_remembered: caches.LruCache[str, Beginning] = caches.LruCache(_MAX)


class Probe:
    """The probe of one connection: the server has ``seconds`` to answer it.

    ``is_pending`` until something is answered or the time is up. ``is_ignored`` if it was not answered in time, until
    the server answers it after all, because it started slowly. ``is_fatal``: the connection ended before the answer.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.id: int | str | None = None
        self.is_pending, self.is_ignored, self.is_fatal = True, False, False
        # Done once the time is over.
        self.expired: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, id_: int | str) -> None:
        """Note that the request with this id was sent."""
        self.id = id_
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._expire)

    def end(self) -> None:
        """Note that the server answered."""
        self.is_pending = False
        if self._timer is not None:
            self._timer.cancel()

    def note_answer(self, id_: Any) -> None:
        """Note that the server answered the request with this id, whether or not that is still waited for."""
        self.is_ignored = self.is_ignored and id_ != self.id

    def note_end_of_messages(self) -> None:
        """Note that the connection ended."""
        self.is_fatal = self.is_fatal or self.is_pending or self.is_ignored
        self.end()

    def _expire(self) -> None:
        self.is_pending, self.is_ignored = False, True
        if not self.expired.done():
            self.expired.set_result(None)


def beginning(settings: connections.Connection) -> Beginning:
    """Return how a new connection begins."""
    if settings.revision == "2026-07-28":
        return "probed"
    return _remembered.get(_key(settings)) or ("initialized" if settings.revision else "probed")


def remember(settings: connections.Connection, beginning: Beginning) -> None:
    """Note how connections to the server begin."""
    _remembered.put(_key(settings), beginning)


def forget(settings: connections.Connection) -> None:
    """Let the next connection be probed again."""
    _remembered.pop(_key(settings))


def _key(settings: connections.Connection) -> str:
    return repr(settings)
