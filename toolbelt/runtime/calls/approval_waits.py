"""Waiting for people to decide about calls: without a slot, a thread or a connection to the database.

Each event loop reads the decisions of all calls that wait on it, with one query. A decision in this process is read at
once, one in another process within half a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Awaitable, Callable

import structlog
from asgiref.sync import async_to_sync

from toolbelt.runtime import feed, threads
from toolbelt.store import call_approvals as rows
from toolbelt.store import commits, databases

POLL_SECONDS = 0.5
# How many calls may wait in a process; further ones are answered at once.
MAX_WAITING = 200
# How often a waiting caller is told that it still waits, in seconds.
TICK_SECONDS = 5.0

_log = structlog.get_logger(__name__)
_lock = threading.Lock()
_waiting = 0


class Waits:
    """The calls that wait on one event loop."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._decided: dict[str, set[asyncio.Future[None]]] = {}
        self._reader: asyncio.Task[None] | None = None
        self._committed = asyncio.Event()
        self._notifier = commits.CommitNotifier(lambda: loop.call_soon_threadsafe(self._committed.set))

    async def until_decided(self, key: str, seconds: float) -> bool:
        """Return whether it was decided, or has expired, within this time."""
        decided = asyncio.get_running_loop().create_future()
        self._decided.setdefault(key, set()).add(decided)
        if self._reader is None:
            self._reader = asyncio.create_task(self._read())
        # It may have been decided since it was read.
        self._committed.set()
        try:
            async with asyncio.timeout(seconds):
                await decided
        except TimeoutError:
            return False
        finally:
            self._decided[key].discard(decided)
            if not self._decided[key]:
                del self._decided[key]
            if not self._decided and self._reader is not None:
                self._reader.cancel()
                self._reader = None
        return True

    async def _read(self) -> None:
        trouble = ""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):
                    await self._committed.wait()
            self._committed.clear()
            keys = [*self._decided]
            try:
                # A server that shuts down waits for its requests to end.
                undecided = frozenset() if feed.is_ended() else await threads.run(rows.undecided, keys)
                trouble = ""
            except Exception as error:
                # They are read again in a moment. Logged once, because it may last.
                if str(error) != trouble:
                    trouble = str(error)
                    _log.exception("decisions about calls not read")
                continue
            for key in keys:
                if key not in undecided:
                    for decided in self._decided.get(key, ()):
                        if not decided.done():
                            decided.set_result(None)


_waits: dict[asyncio.AbstractEventLoop, Waits] = {}


async def until_decided(
    key: str, seconds: float, on_tick: Callable[[float], Awaitable[object]] | None = None
) -> bool:
    """Wait until people have decided about the call with this approval, or it expires; return False if neither happens
    within this time, or too many calls wait already.

    ``on_tick`` is called every few seconds, with how long it has waited.
    """
    if seconds <= 0 or not _enter():
        return False
    begun = time.monotonic()
    try:
        while (left := begun + seconds - time.monotonic()) > 0:
            if await _here().until_decided(key, min(left, TICK_SECONDS)):
                return True
            if on_tick is not None:
                await on_tick(time.monotonic() - begun)
        return False
    finally:
        _leave()


def until_decided_blocking(key: str, seconds: float) -> bool:
    """Wait as :func:`until_decided` does, in a thread, whose connection to the database is given back meanwhile."""
    databases.release()
    return async_to_sync(until_decided)(key, seconds)


def waiting() -> int:
    """Return how many calls wait in this process."""
    return _waiting


def _enter() -> bool:
    global _waiting
    with _lock:
        if _waiting >= MAX_WAITING:
            return False
        _waiting += 1
    return True


def _leave() -> None:
    global _waiting
    with _lock:
        _waiting -= 1


def _here() -> Waits:
    loop = asyncio.get_running_loop()
    if loop not in _waits:
        for other in [other for other in _waits if other.is_closed()]:
            del _waits[other]
        _waits[loop] = Waits()
    return _waits[loop]
