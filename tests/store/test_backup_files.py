"""A copy of a SQLite file has everything that was committed, and nothing that was not, while others have it open."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest

from toolbelt.store.backups import files


def rows(file: Path) -> list[int]:
    with contextlib.closing(sqlite3.connect(file)) as connection:
        return [number for (number,) in connection.execute("SELECT number FROM numbers ORDER BY number")]


@pytest.fixture
def open_file(tmp_path: Path) -> sqlite3.Connection:
    """Return a writer of a file whose commits are still in the log beside it."""
    connection = sqlite3.connect(tmp_path / "db.sqlite3", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute("CREATE TABLE numbers (number)")
    connection.execute("INSERT INTO numbers VALUES (1)")
    return connection


def test_a_copy_has_what_was_committed_and_blocks_no_writer(
    tmp_path: Path, open_file: sqlite3.Connection
) -> None:
    source, copy = tmp_path / "db.sqlite3", tmp_path / "copy.sqlite3"
    open_file.execute("BEGIN IMMEDIATE")
    open_file.execute("INSERT INTO numbers VALUES (2)")
    files.copy(source, copy)
    open_file.execute("COMMIT")
    files.seal(copy)
    assert [file.name for file in tmp_path.glob("copy*")] == ["copy.sqlite3"]
    assert (rows(copy), rows(source)) == ([1], [1, 2])
    open_file.close()


def test_those_that_have_a_file_open_see_what_is_copied_into_it(
    tmp_path: Path, open_file: sqlite3.Connection
) -> None:
    source, copy = tmp_path / "db.sqlite3", tmp_path / "copy.sqlite3"
    files.copy(source, copy)
    open_file.execute("INSERT INTO numbers VALUES (2)")
    identity = source.stat().st_ino
    files.copy(copy, source)
    assert open_file.execute("SELECT number FROM numbers").fetchall() == [(1,)]
    assert source.stat().st_ino == identity
    open_file.close()
