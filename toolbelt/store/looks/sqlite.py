"""How is a SQLite file looked at from an event loop? Over a connection of its own, in the loop's own thread.

In WAL mode a reader never waits for a writer, and a look takes some microseconds: less than a thread hop. In even less
SQLite says whether anything was committed since the last look (``data_version``); what was seen holds until then.
The connection is opened for reading alone, so it can neither write nor tidy up behind a file that was replaced
(`looks.files`).
"""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path
from typing import Any

from toolbelt.store import looks
from toolbelt.store.looks import files

# How much of what was seen to keep; where nothing is ever committed, that is, for a commit forgets all of it.
MOST_KEPT = 4096

_Asked = tuple[str, str, str | None]


def eyes(connection: Any) -> Eyes | None:
    """Give the eyes of Django's connection; None for a database in memory, which no other connection sees."""
    name = connection.settings_dict["NAME"]
    return None if connection.is_in_memory_db() else Eyes(Path(name).resolve())


class Eyes(threading.local):
    """Looks at one file. An implementation of :class:`looks.Eyes`; each thread opens the file for itself."""

    def __init__(self, path: Path) -> None:
        self._file = files.File(path)
        self._opened = 0
        self._version = 0
        self._kept: dict[_Asked, looks.Seen | None] = {}
        self._statement = looks.with_token("", "?1", "?2", "?3")

    async def look(self, prefix: str, agent: str, session: str | None) -> looks.Seen | None:
        """Look: in one statement, or in two where something was committed since the last look for the same."""
        asked = (prefix, agent, session)
        try:
            cursor = self._cursor()
            if asked in self._kept:
                version = files.version(cursor)
                if version == self._version:
                    return self._kept[asked]
                self._version = version
                self._kept.clear()
            # To the end, or the connection would go on seeing this state. Should that be a later one than the version
            # says, the next version says so.
            rows = cursor.execute(self._statement, asked).fetchall()
        except (OSError, sqlite3.Error) as error:
            self._let_go()
            raise looks.Unreachable(str(error)) from error
        if len(self._kept) >= MOST_KEPT:
            self._kept.clear()
        seen = self._kept[asked] = looks.seen(rows[0]) if rows else None
        return seen

    async def close(self) -> None:
        """Close the file."""
        self._let_go()

    def _cursor(self) -> sqlite3.Cursor:
        cursor = self._file.cursor()
        if self._file.opened != self._opened:
            self._kept.clear()
            self._opened, self._version = self._file.opened, files.version(cursor)
        return cursor

    def _let_go(self) -> None:
        self._kept.clear()
        self._file.let_go()
