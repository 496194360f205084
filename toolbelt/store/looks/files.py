"""How is a SQLite file read beside Django's connection? Over one of its own that can neither write nor tidy up."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path


class File:
    """A file that is opened for reading alone, when it is first asked for, in the thread that asks.

    ``opened`` counts how often: what was read of it before belongs to another file, or to another time.
    """

    def __init__(self, path: Path) -> None:
        self._path = os.fspath(path)
        self._address = f"{path.as_uri()}?mode=ro"
        self._open: sqlite3.Cursor | None = None
        self._file = (0, 0)
        self.opened = 0

    def cursor(self) -> sqlite3.Cursor:
        """Give what reads the file that has this name now. Raises OSError or sqlite3.Error where there is none."""
        now = os.stat(self._path)
        file = (now.st_dev, now.st_ino)
        if self._open is None or file != self._file:
            # Another file has its place: a restored backup, for instance.
            self.let_go()
            # A writer that is tidying up is not waited for: that would hold up everyone else.
            opened = sqlite3.connect(self._address, uri=True, timeout=0, isolation_level=None)
            self._open, self._file = opened.cursor(), file
            self.opened += 1
        return self._open

    def let_go(self) -> None:
        """Close the file; it is opened again when it is asked for."""
        if self._open is not None:
            self._open.connection.close()
            self._open = None


def version(cursor: sqlite3.Cursor) -> int:
    """Give a number that is another one after each commit of another connection's; for this connection alone."""
    found: int = cursor.execute("PRAGMA data_version").fetchall()[0][0]
    return found
