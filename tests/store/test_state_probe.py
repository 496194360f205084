"""Tests that the probe reads committed states without waiting for writers, and reports if it cannot."""

from __future__ import annotations

import asyncio
import datetime as dt
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.contrib.auth import models as logins
from django.db import connection, transaction

from tests import factories
from toolbelt import models
from toolbelt.core import sessions as conversations
from toolbelt.store import agent_sessions, credentials, state_probe
from toolbelt.store.state_probe import postgresql, sqlite

PREFIX = "tb_12345678"
ON_SQLITE = pytest.mark.skipif("connection.vendor != 'sqlite'", reason="about SQLite")
ON_POSTGRESQL = pytest.mark.skipif("connection.vendor != 'postgresql'", reason="about PostgreSQL")


def token(**fields: Any) -> models.ApiToken:
    return models.ApiToken.objects.create(**{"prefix": PREFIX, "digest": "d" * 64, **fields})


def probe_all(*lookups: tuple[str, str, str | None]) -> list[state_probe.ProbeResult | None]:
    """Return the results of reading all of these concurrently with a new probe."""

    async def main() -> list[state_probe.ProbeResult | None]:
        probe = state_probe.open_probe()
        assert probe is not None
        try:
            return await asyncio.gather(*(probe.read(*lookup) for lookup in lookups))
        finally:
            await probe.close()

    return asyncio.run(main())


@pytest.mark.django_db(transaction=True)
def test_a_probe_result_equals_the_stored_state():
    ada = factories.everything()
    olga = logins.User.objects.create_user("olga")
    end = dt.datetime(2040, 1, 2, 3, 4, 5, 678, tzinfo=dt.UTC)
    token(agent=ada, name="mine", expires=end)
    token(prefix="tb_of_olga", user=olga, scope="read", revoked=end.replace(microsecond=0))
    agent_sessions.change(
        ada.pk, "s", lambda current: (None, conversations.with_change(current, "toolkit", "dev", True, "r1"))
    )
    own, stored = models.AgentRevision.objects.get(), models.Revision.objects.get()
    stored_state = models.AgentSession.objects.values_list("state", flat=True).get()

    results = probe_all(
        (PREFIX, "ada", "s"),
        (PREFIX, "ada", None),
        (PREFIX, "ada", "another"),
        ("tb_of_olga", "ada", None),
        (PREFIX, "bob", None),
        ("tb_nobody", "ada", None),
    )
    of_ada, of_olga = credentials.find(PREFIX), credentials.find("tb_of_olga")
    assert [result and result.token for result in results] == [of_ada, of_ada, of_ada, of_olga, None, None]
    states = (ada.pk, own.number, own.stamp, stored.catalog_number, stored.catalog_stamp)
    assert results[0] is not None
    assert results[0].state[:5] == states
    assert results[0].state.loadout == ""
    assert agent_sessions.value("s", "", results[0].state.state or "") == agent_sessions.value(
        "s", "", stored_state
    )
    assert [result.state for result in results[1:4] if result] == [
        state_probe.ProbedState(*states, None, None)
    ] * 3


@pytest.mark.django_db(transaction=True)
def test_an_open_probe_sees_commits_but_no_open_transaction():
    ada = factories.agent()
    token(agent=ada)

    async def main() -> list[str]:
        probe, readings, loop = state_probe.open_probe(), [], asyncio.get_running_loop()
        assert probe is not None

        async def note() -> None:
            result = await probe.read(PREFIX, "ada", None)
            readings.append(result.state.agent_stamp if result else "")

        def write() -> None:
            with transaction.atomic():
                models.Agent.objects.update(title="Ada")
                asyncio.run_coroutine_threadsafe(note(), loop).result()
            connection.close()

        await note()
        await asyncio.to_thread(write)
        await note()
        await probe.close()
        return readings

    before, while_written, after = asyncio.run(main())
    assert before == while_written
    assert after != before


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str], Path]:
    """Return a factory of small database files, whose session has the name of the file as its state."""

    def make(name: str) -> Path:
        database = sqlite3.connect(tmp_path / name, isolation_level=None)
        database.execute("PRAGMA journal_mode=WAL")
        database.executescript(_TABLES)
        database.execute("INSERT INTO toolbelt_agentsession VALUES (1, 's', '', ?)", [name])
        database.close()
        return tmp_path / name

    return make


_TABLES = """
CREATE TABLE toolbelt_agent (id, key, archived);
CREATE TABLE toolbelt_agentrevision (agent_id, number, stamp);
CREATE TABLE toolbelt_revision (id, catalog_number, catalog_stamp);
CREATE TABLE toolbelt_agentsession (agent_id, key, loadout, state);
CREATE TABLE toolbelt_apitoken (prefix, name, agent_id, user_id, scope, created, expires, revoked, last_used, digest);
CREATE TABLE auth_user (id, username, is_active);
INSERT INTO toolbelt_agent VALUES (1, 'ada', 0);
INSERT INTO toolbelt_apitoken (prefix, name, agent_id, scope, digest) VALUES ('tb_12345678', '', 1, '', 'd');
"""


async def state(probe: sqlite.StateProbe) -> str | None:
    result = await probe.read(PREFIX, "ada", "s")
    assert result is not None
    return result.state.state


def test_a_replaced_file_is_read_immediately(file):
    original, replacement = file("one"), file("other")

    async def main() -> list[str | None]:
        probe = sqlite.StateProbe(original)
        readings = [await state(probe)]
        # Like restoring a backup: the log of the replaced file is removed with it.
        for log in ("one-wal", "one-shm"):
            original.with_name(log).unlink()
        replacement.rename(original)
        readings.append(await state(probe))
        await probe.close()
        return readings

    assert asyncio.run(main()) == ["one", "other"]


def test_a_missing_file_is_unreachable_until_it_is_restored(file, tmp_path):
    original = file("one")

    async def main() -> str | None:
        probe = sqlite.StateProbe(original)
        await state(probe)
        original.rename(tmp_path / "aside")
        with pytest.raises(state_probe.UnreachableError):
            await state(probe)
        assert not original.exists()
        (tmp_path / "aside").rename(original)
        try:
            return await state(probe)
        finally:
            await probe.close()

    assert asyncio.run(main()) == "one"


def test_a_file_without_tables_is_unreachable(tmp_path):
    empty = tmp_path / "empty"
    sqlite3.connect(empty).close()
    empty.touch()

    async def main() -> None:
        probe = sqlite.StateProbe(empty)
        with pytest.raises(state_probe.UnreachableError, match="no such table"):
            await probe.read(PREFIX, "ada", None)
        await probe.close()

    asyncio.run(main())


def test_a_cached_state_is_used_only_until_the_next_commit(file):
    """Two reads see the same commit, whichever of them sees it first."""
    original = file("one")

    async def main() -> list[str | None]:
        probe, writer = sqlite.StateProbe(original), sqlite3.connect(original, isolation_level=None)
        readings = []
        for turn in range(3):
            writer.execute("UPDATE toolbelt_agentsession SET state = ?", [f"a{turn}"])
            await probe.read(PREFIX, "ada", f"new{turn}")
            readings.append(await state(probe))
            writer.execute("UPDATE toolbelt_agentsession SET state = ?", [f"b{turn}"])
            readings += [await state(probe), await state(probe)]
        await probe.close()
        writer.execute("UPDATE toolbelt_agentsession SET state = 'c'")
        readings.append(await state(probe))
        await probe.close()
        writer.close()
        return readings

    assert asyncio.run(main()) == ["a0", "b0", "b0", "a1", "b1", "b1", "a2", "b2", "b2", "c"]


def test_a_probe_does_not_wait_for_a_writer_and_cannot_write(file):
    original = file("one")

    async def main() -> str | None:
        writer = sqlite3.connect(original, isolation_level=None)
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("UPDATE toolbelt_agentsession SET state = 'not yet'")
        probe = sqlite.StateProbe(original)
        try:
            stored = await state(probe)
            with pytest.raises(sqlite3.OperationalError, match="readonly"):
                probe._cursor().execute("DELETE FROM toolbelt_agent")
            return stored
        finally:
            await probe.close()
            writer.close()

    assert asyncio.run(main()) == "one"


def test_a_file_name_with_url_characters_is_read(file):
    original = file("100% sure?#1")

    async def main() -> str | None:
        probe = sqlite.StateProbe(original)
        try:
            return await state(probe)
        finally:
            await probe.close()

    assert asyncio.run(main()) == "100% sure?#1"


@ON_SQLITE
def test_an_in_memory_database_has_no_probe(monkeypatch):
    monkeypatch.setitem(connection.settings_dict, "NAME", ":memory:")
    assert state_probe.open_probe() is None


@ON_POSTGRESQL
@pytest.mark.django_db(transaction=True)
def test_waiting_reads_share_the_next_statement(monkeypatch):
    token(agent=factories.agent())
    batch_sizes: list[int] = []
    results, started = postgresql.StateProbe._results, asyncio.Event()

    async def counting(probe: Any, questions: Any) -> Any:
        batch_sizes.append(len(questions))
        started.set()
        return await results(probe, questions)

    monkeypatch.setattr(postgresql.StateProbe, "_results", counting)

    async def main() -> list[Any]:
        probe = state_probe.open_probe()
        assert probe is not None
        first = asyncio.create_task(probe.read(PREFIX, "ada", "first"))
        await started.wait()
        others = [probe.read(PREFIX, "ada" if n % 2 else "bob", f"s{n % 4}") for n in range(6)]
        readings = await asyncio.gather(first, *others)
        await probe.close()
        return readings

    readings = asyncio.run(main())
    assert batch_sizes == [1, 4]
    assert [result is not None for result in readings] == [True, False, True, False, True, False, True]


def test_connecting_to_a_missing_server_is_throttled():
    probe = postgresql.StateProbe({"host": "127.0.0.1", "port": 1, "dbname": "none", "connect_timeout": 5})
    attempts: list[object] = []
    connect = psycopg.AsyncConnection.connect

    async def counting(**parameters: Any) -> Any:
        attempts.append(parameters)
        return await connect(**parameters)

    async def main() -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(psycopg.AsyncConnection, "connect", counting)
            patch.setattr(postgresql, "PAUSE_SECONDS", 1000.0)
            for _ in range(3):
                with pytest.raises(state_probe.UnreachableError):
                    await probe.read(PREFIX, "ada", None)
        await probe.close()

    asyncio.run(main())
    assert len(attempts) == 1


def test_statements_are_not_prepared_behind_a_pooler_that_loses_them(monkeypatch):
    async def results(probe: Any, questions: Any) -> Any:
        raise psycopg.errors.InvalidSqlStatementName("it does not exist")

    monkeypatch.setattr(postgresql.StateProbe, "_results", results)

    async def main() -> Any:
        probe = postgresql.StateProbe({"prepare_threshold": 0})
        with pytest.raises(state_probe.UnreachableError):
            await probe.read(PREFIX, "ada", None)
        return probe._parameters["prepare_threshold"]

    assert asyncio.run(main()) is None


@pytest.mark.parametrize("error", [TypeError("a defect"), asyncio.CancelledError()])
def test_an_unexpected_error_ends_every_waiting_read(monkeypatch, error):
    async def results(probe: Any, questions: Any) -> Any:
        raise error

    monkeypatch.setattr(postgresql.StateProbe, "_results", results)

    async def main() -> None:
        probe = postgresql.StateProbe({})
        async with asyncio.timeout(20):
            for _ in range(2):
                with pytest.raises((state_probe.UnreachableError, asyncio.CancelledError)):
                    await probe.read(PREFIX, "ada", None)

    asyncio.run(main())


@ON_POSTGRESQL
@pytest.mark.django_db(transaction=True)
def test_a_terminated_connection_is_replaced_transparently():
    token(agent=factories.agent())

    async def main() -> None:
        probe = state_probe.open_probe()
        assert isinstance(probe, postgresql.StateProbe)
        await probe.read(PREFIX, "ada", None)
        assert probe._open is not None
        pid = probe._open.connection.info.backend_pid
        await asyncio.to_thread(_terminate, pid)
        assert await probe.read(PREFIX, "ada", None) is not None
        await probe.close()

    asyncio.run(main())


def _terminate(pid: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 1000)", [pid])
    connection.close()
