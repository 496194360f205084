"""Watching a SQLite file by polling its version, which takes some microseconds.

The version changes with each commit of any other connection, of this process or another; nothing else is read until it
does. Commits of this process are noticed immediately.
"""

from __future__ import annotations

import asyncio
import dataclasses
import sqlite3
from pathlib import Path
from typing import Any

from toolbelt.store import commits, database_file
from toolbelt.store.state_probe import files

# The maximum time until another process's commit is noticed.
POLL_SECONDS = 0.05

_STATEMENT = commits.statement("?1")


def watch(connection: Any) -> Watch | None:
    """Return a watch of the file of Django's connection; None for a database in memory."""
    if connection.is_in_memory_db():
        return None
    return Watch(Path(connection.settings_dict["NAME"]).resolve())


class Watch:
    """Watches one file: the :class:`commits.Watch` of SQLite, created and used on one event loop."""

    def __init__(self, path: Path) -> None:
        loop = asyncio.get_running_loop()
        self._file = files.File(path)
        self._opened = 0
        self._version = 0
        self._state: commits.State | None = None
        self._was_notified = False
        self._waiting: asyncio.Future[None] | None = None
        self._alarm = commits.CommitNotifier(lambda: loop.call_soon_threadsafe(self._notify))

    async def wait(self, seconds: float) -> None:
        """Poll the version by a timer, which costs less than a task that sleeps."""
        loop = asyncio.get_running_loop()
        waiting = self._waiting = loop.create_future()
        until = loop.time() + seconds
        timer = None

        def poll() -> None:
            nonlocal timer
            if waiting.done():
                return
            try:
                remaining = until - loop.time()
                if self._was_notified or self._has_moved() or remaining <= 0:
                    waiting.set_result(None)
                else:
                    timer = loop.call_later(min(POLL_SECONDS, remaining), poll)
            except commits.UnreachableError as error:
                waiting.set_exception(error)

        poll()
        try:
            await waiting
        finally:
            self._waiting = None
            if timer is not None:
                timer.cancel()

    async def read(self) -> commits.State:
        """Return the state; if the version is unchanged, nothing else is read."""
        self._was_notified = False
        try:
            cursor = self._file.cursor()
            if self._file.opened != self._opened:
                self._opened, self._state = self._file.opened, None
                database_file.was_replaced()  # which logs it
            version = files.version(cursor)
            if self._state is not None and version == self._version:
                return self._state
            since = self._state.number if self._state is not None else commits.FROM_START
            state = commits.merged(self._state, cursor.execute(_STATEMENT, [since]).fetchall())
            if state is None:
                state = commits.full_state(cursor.execute(_STATEMENT, [commits.FROM_START]).fetchall())
            if self._state is None or state.number != self._state.number:
                state = dataclasses.replace(state, ends=commits.ends(cursor.execute(commits.ENDS).fetchall()))
        except (OSError, sqlite3.Error) as error:
            self._file.release()
            raise commits.UnreachableError(str(error)) from error
        # If the state is newer than this version, the next version differs as well.
        self._state, self._version = state, version
        return state

    async def close(self) -> None:
        """Close the file."""
        self._file.release()

    def _notify(self) -> None:
        self._was_notified = True
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def _has_moved(self) -> bool:
        try:
            cursor = self._file.cursor()
            return self._file.opened != self._opened or files.version(cursor) != self._version
        except (OSError, sqlite3.Error) as error:
            self._file.release()
            raise commits.UnreachableError(str(error)) from error
