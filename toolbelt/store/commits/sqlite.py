"""How does one hear of commits to a SQLite file? By asking for its version, which takes some microseconds.

The version moves with each commit of any other connection, of this process or another; nothing is read until it does.
What this process commits rings at once.
"""

from __future__ import annotations

import asyncio
import dataclasses
import sqlite3
from pathlib import Path
from typing import Any

from toolbelt.store import commits, database_file
from toolbelt.store.looks import files

# How long another process's commit may go unseen.
PAUSE = 0.05

_STATEMENT = commits.statement("?1")


def watch(connection: Any) -> Watch | None:
    """Give what watches the file of Django's connection; None for a database in memory."""
    if connection.is_in_memory_db():
        return None
    return Watch(Path(connection.settings_dict["NAME"]).resolve())


class Watch:
    """Watches one file. An implementation of :class:`commits.Watch`, to be made and used on one event loop."""

    def __init__(self, path: Path) -> None:
        loop = asyncio.get_running_loop()
        self._file = files.File(path)
        self._opened = 0
        self._version = 0
        self._known: commits.State | None = None
        self._was_rung = False
        self._waiting: asyncio.Future[None] | None = None
        self._alarm = commits.Alarm(lambda: loop.call_soon_threadsafe(self._hear))

    async def wait(self, seconds: float) -> None:
        """Ask for the version, again and again: by a timer, which costs less than a task that sleeps."""
        loop = asyncio.get_running_loop()
        waiting = self._waiting = loop.create_future()
        until = loop.time() + seconds
        timer = None

        def look() -> None:
            nonlocal timer
            if waiting.done():
                return
            try:
                left = until - loop.time()
                if self._was_rung or self._has_moved() or left <= 0:
                    waiting.set_result(None)
                else:
                    timer = loop.call_later(min(PAUSE, left), look)
            except commits.Unreachable as error:
                waiting.set_exception(error)

        look()
        try:
            await waiting
        finally:
            self._waiting = None
            if timer is not None:
                timer.cancel()

    async def read(self) -> commits.State:
        """Read: nothing but the version, where that is the one of the last reading."""
        self._was_rung = False
        try:
            cursor = self._file.cursor()
            if self._file.opened != self._opened:
                self._opened, self._known = self._file.opened, None
                database_file.was_exchanged()  # which logs it
            version = files.version(cursor)
            if self._known is not None and version == self._version:
                return self._known
            since = self._known.number if self._known is not None else commits.EVER
            found = commits.merged(self._known, cursor.execute(_STATEMENT, [since]).fetchall())
            if found is None:
                found = commits.whole(cursor.execute(_STATEMENT, [commits.EVER]).fetchall())
            if self._known is None or found.number != self._known.number:
                found = dataclasses.replace(found, ends=commits.ends(cursor.execute(commits.ENDS).fetchall()))
        except (OSError, sqlite3.Error) as error:
            self._file.let_go()
            raise commits.Unreachable(str(error)) from error
        # Should what was read be later than the version says, the next version says so.
        self._known, self._version = found, version
        return found

    async def close(self) -> None:
        """Close the file."""
        self._file.let_go()

    def _hear(self) -> None:
        self._was_rung = True
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def _has_moved(self) -> bool:
        try:
            cursor = self._file.cursor()
            return self._file.opened != self._opened or files.version(cursor) != self._version
        except (OSError, sqlite3.Error) as error:
            self._file.let_go()
            raise commits.Unreachable(str(error)) from error
