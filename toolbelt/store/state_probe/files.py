"""Reading a SQLite file over a connection of its own, which can neither write nor check points."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path


class File:
    """A file that is opened read-only on first use, in the thread that uses it.

    ``opened`` counts how often: what was read before belongs to another file, or to another time.
    """

    def __init__(self, path: Path) -> None:
        self._path = os.fspath(path)
        self._address = f"{path.as_uri()}?mode=ro"
        self._open: sqlite3.Cursor | None = None
        self._file = (0, 0)
        self.opened = 0

    def cursor(self) -> sqlite3.Cursor:
        """Return a cursor of the file that has this name now; raise OSError or sqlite3.Error if there is none."""
        now = os.stat(self._path)
        file = (now.st_dev, now.st_ino)
        if self._open is None or file != self._file:
            # The file was replaced, by a restored backup for example.
            self.release()
            # Not waiting for a writer that checkpoints, because that would block everything else.
            opened = sqlite3.connect(self._address, uri=True, timeout=0, isolation_level=None)
            self._open, self._file = opened.cursor(), file
            self.opened += 1
        return self._open

    def release(self) -> None:
        """Close the file; it is opened again on the next use."""
        if self._open is not None:
            self._open.connection.close()
            self._open = None


def version(cursor: sqlite3.Cursor) -> int:
    """Return a number that changes with each commit of another connection; valid for this connection only."""
    number: int = cursor.execute("PRAGMA data_version").fetchall()[0][0]
    return number
