"""SQLite files as backups: copied with SQLite's backup API, which is consistent while others write."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

HEADER = b"SQLite format 3\x00"


def copy(source: Path, target: Path) -> None:
    """Copy a database into a file, which may be a database that others have open: they see either state, whole."""
    with (
        contextlib.closing(sqlite3.connect(f"{source.resolve().as_uri()}?mode=ro", uri=True)) as reader,
        contextlib.closing(sqlite3.connect(target, timeout=30)) as writer,
    ):
        reader.backup(writer)


def seal(file: Path) -> None:
    """Leave a copy as a single file, without a log beside it."""
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")


def migrations(file: Path) -> frozenset[str]:
    """Return the names of Toolbelt's migrations in a file; none if it is not a database of Toolbelt's.

    Raise sqlite3.DatabaseError if it is damaged.
    """
    with contextlib.closing(
        sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
    ) as connection:
        [(answer,), *_] = connection.execute("PRAGMA quick_check(1)").fetchall()
        if answer != "ok":
            raise sqlite3.DatabaseError(answer)
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        if "django_migrations" not in tables:
            return frozenset()
        rows = connection.execute("SELECT name FROM django_migrations WHERE app = 'toolbelt'")
        return frozenset(name for (name,) in rows)
