"""Tests that database errors are classified correctly, and that errors in our code are not."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import psycopg_pool
import pytest
from django import db

from tests import breaking
from toolbelt.core import errors
from toolbelt.store import faults


def code(error: BaseException | None) -> str | None:
    fault = faults.classify(error)
    assert fault is None or fault.status == (507 if fault.code == "storage-full" else 503)
    return None if fault is None else fault.code


def error_of(act: Callable[[], Any]) -> Exception:
    with pytest.raises(Exception) as raised:  # noqa: PT011 (the caller checks which)
        act()
    return raised.value


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "some.sqlite3"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE one (text)")
    connection.close()
    return path


@pytest.fixture
def open_connection(file: Path) -> Any:
    connection = sqlite3.connect(file, timeout=0, isolation_level=None)
    yield connection
    connection.close()


def test_a_file_locked_by_another_connection_is_busy(file, open_connection):
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert code(error_of(lambda: open_connection.execute("BEGIN IMMEDIATE"))) == "database-busy"
    other.close()


def test_a_full_file_is_classified_as_storage_full(open_connection):
    open_connection.execute("PRAGMA max_page_count=3")
    error = error_of(lambda: open_connection.execute("INSERT INTO one VALUES (?)", ["x" * 100_000]))
    assert code(error) == "storage-full"


def test_a_read_only_file_is_classified_as_read_only(file):
    connection = sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)
    assert code(error_of(lambda: connection.execute("INSERT INTO one VALUES ('x')"))) == "database-read-only"
    connection.close()


def test_a_missing_file_is_classified_as_unavailable(tmp_path):
    error = error_of(lambda: sqlite3.connect(f"{(tmp_path / 'none').as_uri()}?mode=rw", uri=True))
    assert code(error) == "database-unavailable"
    assert "missing" in str(faults.classify(error))


def test_a_file_that_is_not_a_database_is_reported_as_damaged(tmp_path):
    path = tmp_path / "junk"
    path.write_bytes(b"junk" * 5000)
    connection = sqlite3.connect(path)
    error = error_of(lambda: connection.execute("SELECT * FROM one"))
    assert code(error) == "database-unavailable"
    assert "damaged" in str(faults.classify(error))
    connection.close()


def test_a_file_without_tables_is_reported_as_such(tmp_path):
    connection = sqlite3.connect(tmp_path / "empty")
    error = error_of(lambda: connection.execute("SELECT * FROM one"))
    assert "lacks tables" in str(faults.classify(error))
    connection.close()


def test_an_io_error_on_a_full_disk_is_classified_as_storage_full(monkeypatch):
    class Io(sqlite3.OperationalError):
        sqlite_errorcode = sqlite3.SQLITE_IOERR_SHMSIZE

    assert code(Io()) == "database-unavailable"
    monkeypatch.setattr(faults, "MIN_FREE_BYTES", 1 << 62)
    assert code(Io()) == "storage-full"


@pytest.mark.parametrize("statement", ["SELECT nothing", "nonsense", "INSERT INTO one VALUES (1, 2)"])
def test_an_error_in_our_sql_is_not_classified_as_a_fault(open_connection, statement):
    assert code(error_of(lambda: open_connection.execute(statement))) is None


def test_other_errors_are_not_classified_as_faults():
    assert code(RuntimeError("broken")) is None
    assert code(errors.Refused("no")) is None
    assert code(None) is None


def test_a_cause_is_classified_but_a_context_is_not():
    cause = sqlite3.OperationalError("database is locked")
    cause.sqlite_errorcode = sqlite3.SQLITE_BUSY
    outer, meanwhile = RuntimeError("outer"), RuntimeError("meanwhile")
    outer.__cause__ = db.OperationalError("locked")
    outer.__cause__.__cause__ = cause
    meanwhile.__context__ = cause
    assert (code(outer), code(meanwhile)) == ("database-busy", None)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("connection to server at ... failed: Connection refused", "database-unavailable"),
        ("FATAL:  sorry, too many clients already", "database-busy"),
        ("FATAL:  remaining connection slots are reserved for ...", "database-busy"),
        ("server closed the connection unexpectedly", "database-unavailable"),
    ],
)
def test_a_failed_connection_is_classified_by_its_message(words, expected):
    assert code(psycopg.OperationalError(words)) == expected


@breaking.ON_POSTGRESQL
@pytest.mark.django_db
@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("53100", "storage-full"),
        ("53200", "database-unavailable"),
        ("53300", "database-busy"),
        ("25006", "database-read-only"),
        ("57P01", "database-unavailable"),
        ("57P03", "database-unavailable"),
        ("57014", "database-busy"),
        ("40P01", "database-busy"),
        ("40001", "database-busy"),
        ("55P03", "database-busy"),
        ("58030", "database-unavailable"),
        ("08006", "database-unavailable"),
        ("XX001", "database-unavailable"),
        ("42P01", "database-unavailable"),
        ("42703", None),
        ("42601", None),
        ("23505", None),
        ("22012", None),
    ],
)
def test_a_server_error_is_classified_by_its_sqlstate(state, expected):
    def fail() -> None:
        with db.connection.cursor() as cursor:
            cursor.execute(f"DO $$ BEGIN RAISE EXCEPTION 'words' USING ERRCODE = '{state}'; END $$")

    assert code(error_of(fail)) == expected


def test_a_pool_timeout_is_classified_by_the_last_connection_error(monkeypatch):
    refusal: list[psycopg.Error | None] = [None]
    monkeypatch.setattr(faults, "_last_refusal", lambda: refusal[0])
    assert code(psycopg_pool.PoolTimeout()) == "database-busy"
    refusal[0] = psycopg.OperationalError("Connection refused")
    assert code(psycopg_pool.PoolTimeout()) == "database-unavailable"
