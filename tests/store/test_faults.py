"""Each database error is classified correctly, and our own defects are not classified as one."""

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
    found = faults.classify(error)
    assert found is None or found.status == (507 if found.code == "storage-full" else 503)
    return None if found is None else found.code


def fails(act: Callable[[], Any]) -> Exception:
    with pytest.raises(Exception) as raised:  # noqa: PT011 (which one is what is looked at)
        act()
    return raised.value


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "some.sqlite3"
    with sqlite3.connect(path) as made:
        made.execute("PRAGMA journal_mode=WAL")
        made.execute("CREATE TABLE one (text)")
    made.close()
    return path


@pytest.fixture
def opened(file: Path) -> Any:
    connection = sqlite3.connect(file, timeout=0, isolation_level=None)
    yield connection
    connection.close()


def test_a_file_that_another_connection_writes_to_is_busy(file, opened):
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert code(fails(lambda: opened.execute("BEGIN IMMEDIATE"))) == "database-busy"
    other.close()


def test_a_file_without_room_is_a_full_disk(opened):
    opened.execute("PRAGMA max_page_count=3")
    error = fails(lambda: opened.execute("INSERT INTO one VALUES (?)", ["x" * 100_000]))
    assert code(error) == "storage-full"


def test_a_file_that_takes_no_writes_is_read_only(file):
    connection = sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)
    assert code(fails(lambda: connection.execute("INSERT INTO one VALUES ('x')"))) == "database-read-only"
    connection.close()


def test_a_file_that_is_missing_is_away(tmp_path):
    error = fails(lambda: sqlite3.connect(f"{(tmp_path / 'none').as_uri()}?mode=rw", uri=True))
    assert code(error) == "database-unavailable"
    assert "missing" in str(faults.classify(error))


def test_a_file_that_is_no_database_is_damaged(tmp_path):
    path = tmp_path / "junk"
    path.write_bytes(b"junk" * 5000)
    connection = sqlite3.connect(path)
    error = fails(lambda: connection.execute("SELECT * FROM one"))
    assert code(error) == "database-unavailable"
    assert "damaged" in str(faults.classify(error))
    connection.close()


def test_a_file_without_tables_says_so(tmp_path):
    connection = sqlite3.connect(tmp_path / "empty")
    error = fails(lambda: connection.execute("SELECT * FROM one"))
    assert "lacks tables" in str(faults.classify(error))
    connection.close()


def test_an_error_of_a_disk_without_room_is_a_full_disk(monkeypatch):
    class Io(sqlite3.OperationalError):
        sqlite_errorcode = sqlite3.SQLITE_IOERR_SHMSIZE

    assert code(Io()) == "database-unavailable"
    monkeypatch.setattr(faults, "MIN_FREE_BYTES", 1 << 62)
    assert code(Io()) == "storage-full"


@pytest.mark.parametrize("statement", ["SELECT nothing", "nonsense", "INSERT INTO one VALUES (1, 2)"])
def test_a_defect_of_ours_is_none_of_those(opened, statement):
    assert code(fails(lambda: opened.execute(statement))) is None


def test_other_errors_are_none_of_those():
    assert code(RuntimeError("broken")) is None
    assert code(errors.Refused("no")) is None
    assert code(None) is None


def test_what_was_raised_from_a_fault_is_one_and_what_was_raised_meanwhile_is_not():
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
def test_a_connection_that_cannot_be_made_says_why_in_words_alone(words, expected):
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
def test_a_server_says_by_its_state_what_is_wrong(state, expected):
    def fail() -> None:
        with db.connection.cursor() as cursor:
            cursor.execute(f"DO $$ BEGIN RAISE EXCEPTION 'words' USING ERRCODE = '{state}'; END $$")

    assert code(fails(fail)) == expected


def test_a_pool_that_has_no_connection_in_time_says_whether_one_could_be_made(monkeypatch):
    refusal: list[psycopg.Error | None] = [None]
    monkeypatch.setattr(faults, "_last_refusal", lambda: refusal[0])
    assert code(psycopg_pool.PoolTimeout()) == "database-busy"
    refusal[0] = psycopg.OperationalError("Connection refused")
    assert code(psycopg_pool.PoolTimeout()) == "database-unavailable"
