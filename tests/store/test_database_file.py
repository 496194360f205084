"""Tests that a server notices a replaced SQLite file, and does not create a missing one."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
from django import db, test
from django.db import connections

from tests import breaking
from tests.runtime import following
from toolbelt.runtime import feed
from toolbelt.store import database_file
from toolbelt.web.kit import health

pytestmark = [breaking.ON_SQLITE, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """Use a copy of the database, because files left beside a replaced one would break later tests."""
    copy = tmp_path / "db.sqlite3"
    with db.connection.cursor() as cursor:
        cursor.execute("VACUUM INTO %s", [str(copy)])
    connections.close_all()
    with mock.patch.dict(db.connection.settings_dict, NAME=str(copy)), breaking.breakable():
        yield copy
        connections.close_all()


@pytest.fixture
def replaced_file(path: Path) -> Iterator[None]:
    """Replace the file by a copy, like an operator who restores a backup under a running server."""
    with db.connection.cursor() as cursor:
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connections.close_all()
    other, own = path.with_name("other.sqlite3"), path.with_name("own.sqlite3")
    shutil.copy(path, other)
    path.rename(own)
    other.rename(path)
    yield
    connections.close_all()
    own.rename(path)


def test_an_unchanged_file_does_not_count_as_replaced(path, client):
    assert not database_file.was_replaced()
    assert client.get("/readyz").status_code == 200


@pytest.mark.usefixtures("replaced_file")
def test_a_server_with_a_replaced_file_is_not_ready_and_logs_it_once(client: test.Client, caplog):
    for _ in range(2):
        answer = client.get("/readyz")
        assert (answer.status_code, answer.json()["because"]) == (503, health.DATABASE_REPLACED)
    assert caplog.text.count("database file was exchanged under this server") == 1


def test_a_server_with_a_missing_file_reports_it_and_creates_none(path, client):
    connections.close_all()
    away = path.with_name("away.sqlite3")
    path.rename(away)
    try:
        assert client.get("/readyz").json()["because"] == health.DATABASE_REPLACED
        with pytest.raises(db.OperationalError):
            db.connection.ensure_connection()
        assert not path.exists()
    finally:
        connections.close_all()
        away.rename(path)


def test_the_change_feed_notices_a_replaced_file(path, caplog):
    async def replace_the_file() -> None:
        async with feed.all_changes():
            other = path.with_name("other.sqlite3")
            shutil.copy(path, other)
            own = path.with_name("own.sqlite3")
            path.rename(own)
            other.rename(path)
            try:
                while not database_file._reported:  # noqa: ASYNC110 (nothing signals a log line)
                    await asyncio.sleep(0.02)
                assert "database file was exchanged under this server" in caplog.text
            finally:
                own.rename(path)

    # It ends on its own, or fails with a timeout.
    following.run(replace_the_file)
