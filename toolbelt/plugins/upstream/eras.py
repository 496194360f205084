"""Which servers only speak the revisions of MCP that begin with an initialization.

A new connection is probed for the stateless revision. Some servers end, hang or break when they are probed: this
process remembers them, until an operator refreshes them or their connection changes.
"""

from __future__ import annotations

import asyncio

from toolbelt.core import caches, connections

_MAX = 10_000

_initialized: caches.LruCache[str, bool] = caches.LruCache(_MAX)


class Probe:
    """The probe of one connection: the server has ``seconds`` to answer it.

    ``is_pending`` until something is answered or the time is over; ``is_late`` if it was. ``is_fatal``: the connection
    ended meanwhile.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.id: int | str | None = None
        self.is_pending, self.is_late, self.is_fatal = True, False, False
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

    def note_end_of_messages(self) -> None:
        """Note that the connection ended."""
        self.is_fatal = self.is_fatal or self.is_pending
        self.end()

    def _expire(self) -> None:
        self.is_pending, self.is_late = False, True
        if not self.expired.done():
            self.expired.set_result(None)


def is_probed(settings: connections.Connection) -> bool:
    """Return whether a new connection is probed, or initialized at once."""
    if settings.revision:
        return settings.revision == "2026-07-28"
    return not _initialized.get(_key(settings))


def remember(settings: connections.Connection) -> None:
    """Note that the server does not bear to be probed, but can be initialized."""
    _initialized.put(_key(settings), True)


def forget(settings: connections.Connection) -> None:
    """Let the next connection be probed again."""
    _initialized.pop(_key(settings))


def _key(settings: connections.Connection) -> str:
    return repr(settings)
