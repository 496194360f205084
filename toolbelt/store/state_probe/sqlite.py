"""The probe of SQLite: a connection of its own, in the event loop's thread.

In WAL mode, a reader never waits for a writer, and a probe takes some microseconds: less than switching threads. SQLite
tells even faster whether anything was committed since the last probe (``data_version``); results are cached until then.
The connection is read-only, so it can neither write nor checkpoint a file that was replaced (`state_probe.files`).
"""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path
from typing import Any

from toolbelt.store import state_probe
from toolbelt.store.state_probe import files

# How many results are cached if nothing is ever committed; a commit clears the cache.
MAX_CACHED = 4096

_Request = tuple[str, str, str | None]


def open_probe(connection: Any) -> StateProbe | None:
    """Return a probe of Django's database; None for a database in memory, which no other connection sees."""
    name = connection.settings_dict["NAME"]
    return None if connection.is_in_memory_db() else StateProbe(Path(name).resolve())


class StateProbe(threading.local):
    """Reads one file: the :class:`state_probe.StateProbe` of SQLite; each thread opens the file for itself."""

    def __init__(self, path: Path) -> None:
        self._file = files.File(path)
        self._opened = 0
        self._version = 0
        self._results: dict[_Request, state_probe.ProbeResult | None] = {}
        self._statement = state_probe.with_token("", "?1", "?2", "?3")

    async def read(self, prefix: str, agent: str, session: str | None) -> state_probe.ProbeResult | None:
        """Read in one statement, or in two if something was committed since the same request."""
        request = (prefix, agent, session)
        try:
            cursor = self._cursor()
            if request in self._results:
                version = files.version(cursor)
                if version == self._version:
                    return self._results[request]
                self._version = version
                self._results.clear()
            # Fetched completely, or the connection would keep this state. If it is newer than the version, the next
            # version differs.
            rows = cursor.execute(self._statement, request).fetchall()
        except (OSError, sqlite3.Error) as error:
            self._disconnect()
            raise state_probe.UnreachableError(str(error)) from error
        if len(self._results) >= MAX_CACHED:
            self._results.clear()
        result = self._results[request] = state_probe.from_row(rows[0]) if rows else None
        return result

    async def close(self) -> None:
        """Close the file."""
        self._disconnect()

    def _cursor(self) -> sqlite3.Cursor:
        cursor = self._file.cursor()
        if self._file.opened != self._opened:
            self._results.clear()
            self._opened, self._version = self._file.opened, files.version(cursor)
        return cursor

    def _disconnect(self) -> None:
        self._results.clear()
        self._file.release()
