"""Tests that copying a SQLite file that others have open copies exactly the committed rows."""

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
    """Return a connection whose commits are still in the write-ahead log."""
    connection = sqlite3.connect(tmp_path / "db.sqlite3", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute("CREATE TABLE numbers (number)")
    connection.execute("INSERT INTO numbers VALUES (1)")
    return connection


def test_a_copy_contains_committed_rows_only_and_does_not_block_writers(
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


def test_open_connections_see_a_copy_into_their_file(tmp_path: Path, open_file: sqlite3.Connection) -> None:
    source, copy = tmp_path / "db.sqlite3", tmp_path / "copy.sqlite3"
    files.copy(source, copy)
    open_file.execute("INSERT INTO numbers VALUES (2)")
    identity = source.stat().st_ino
    files.copy(copy, source)
    assert open_file.execute("SELECT number FROM numbers").fetchall() == [(1,)]
    assert source.stat().st_ino == identity
    open_file.close()
