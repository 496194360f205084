"""The probe reads committed states without waiting for writers, and reports when it cannot read."""

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
from toolbelt.store import credentials, sessions, state_probe
from toolbelt.store.state_probe import postgresql, sqlite

PREFIX = "tb_12345678"
ON_SQLITE = pytest.mark.skipif("connection.vendor != 'sqlite'", reason="about SQLite")
ON_POSTGRESQL = pytest.mark.skipif("connection.vendor != 'postgresql'", reason="about PostgreSQL")


def token(**fields: Any) -> models.ApiToken:
    return models.ApiToken.objects.create(**{"prefix": PREFIX, "digest": "d" * 64, **fields})


def look(*asked: tuple[str, str, str | None]) -> list[state_probe.ProbeResult | None]:
    """Look for all of these at once, with new probe."""

    async def main() -> list[state_probe.ProbeResult | None]:
        probe = state_probe.open_probe()
        assert probe is not None
        try:
            return await asyncio.gather(*(probe.read(*one) for one in asked))
        finally:
            await probe.close()

    return asyncio.run(main())


@pytest.mark.django_db(transaction=True)
def test_a_look_finds_what_the_store_finds():
    ada = factories.everything()
    olga = logins.User.objects.create_user("olga")
    end = dt.datetime(2040, 1, 2, 3, 4, 5, 678, tzinfo=dt.UTC)
    token(agent=ada, name="mine", expires=end)
    token(prefix="tb_of_olga", user=olga, scope="read", revoked=end.replace(microsecond=0))
    sessions.change(
        ada.pk, "s", lambda held: (None, conversations.with_change(held, "toolkit", "dev", True, "r1"))
    )
    own, stored = models.AgentRevision.objects.get(), models.Revision.objects.get()
    kept = models.AgentSession.objects.values_list("state", flat=True).get()

    found = look(
        (PREFIX, "ada", "s"),
        (PREFIX, "ada", None),
        (PREFIX, "ada", "another"),
        ("tb_of_olga", "ada", None),
        (PREFIX, "bob", None),
        ("tb_nobody", "ada", None),
    )
    of_ada, of_olga = credentials.find(PREFIX), credentials.find("tb_of_olga")
    assert [one and one.token for one in found] == [of_ada, of_ada, of_ada, of_olga, None, None]
    states = (ada.pk, own.number, own.stamp, stored.catalog_number, stored.catalog_stamp)
    assert found[0] is not None
    assert found[0].state[:5] == states
    assert found[0].state.loadout == ""
    assert sessions.value("s", "", found[0].state.state or "") == sessions.value("s", "", kept)
    assert [one.state for one in found[1:4] if one] == [state_probe.ProbedState(*states, None, None)] * 3


@pytest.mark.django_db(transaction=True)
def test_open_eyes_see_each_commit_and_no_transaction_under_way():
    ada = factories.agent()
    token(agent=ada)

    async def main() -> list[str]:
        probe, seen, loop = state_probe.open_probe(), [], asyncio.get_running_loop()
        assert probe is not None

        async def note() -> None:
            found = await probe.read(PREFIX, "ada", None)
            seen.append(found.state.agent_stamp if found else "")

        def write() -> None:
            with transaction.atomic():
                models.Agent.objects.update(title="Ada")
                asyncio.run_coroutine_threadsafe(note(), loop).result()
            connection.close()

        await note()
        await asyncio.to_thread(write)
        await note()
        await probe.close()
        return seen

    before, while_written, after = asyncio.run(main())
    assert before == while_written
    assert after != before


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str], Path]:
    """Return what makes a small database file of the name, whose agent's session has this state."""

    def make(name: str) -> Path:
        kept = sqlite3.connect(tmp_path / name, isolation_level=None)
        kept.execute("PRAGMA journal_mode=WAL")
        kept.executescript(_TABLES)
        kept.execute("INSERT INTO toolbelt_agentsession VALUES (1, 's', '', ?)", [name])
        kept.close()
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
    found = await probe.read(PREFIX, "ada", "s")
    assert found is not None
    return found.state.state


def test_another_file_in_its_place_is_seen_at_once(file):
    one, other = file("one"), file("other")

    async def main() -> list[str | None]:
        probe = sqlite.StateProbe(one)
        seen = [await state(probe)]
        # As one restores a backup: the log that belonged to the other file goes with it.
        for log in ("one-wal", "one-shm"):
            one.with_name(log).unlink()
        other.rename(one)
        seen.append(await state(probe))
        await probe.close()
        return seen

    assert asyncio.run(main()) == ["one", "other"]


def test_a_file_that_is_gone_cannot_be_reached_and_comes_back(file, tmp_path):
    one = file("one")

    async def main() -> str | None:
        probe = sqlite.StateProbe(one)
        await state(probe)
        one.rename(tmp_path / "aside")
        with pytest.raises(state_probe.UnreachableError):
            await state(probe)
        assert not one.exists()
        (tmp_path / "aside").rename(one)
        try:
            return await state(probe)
        finally:
            await probe.close()

    assert asyncio.run(main()) == "one"


def test_a_table_that_a_migration_has_not_made_yet_cannot_be_reached(tmp_path):
    empty = tmp_path / "empty"
    sqlite3.connect(empty).close()
    empty.touch()

    async def main() -> None:
        probe = sqlite.StateProbe(empty)
        with pytest.raises(state_probe.UnreachableError, match="no such table"):
            await probe.read(PREFIX, "ada", None)
        await probe.close()

    asyncio.run(main())


def test_what_was_seen_holds_until_something_is_committed(file):
    """Whichever of two looks is the first to see a commit, the other one sees it, too."""
    one = file("one")

    async def main() -> list[str | None]:
        probe, writer = sqlite.StateProbe(one), sqlite3.connect(one, isolation_level=None)
        seen = []
        for turn in range(3):
            writer.execute("UPDATE toolbelt_agentsession SET state = ?", [f"a{turn}"])
            await probe.read(PREFIX, "ada", f"new{turn}")
            seen.append(await state(probe))
            writer.execute("UPDATE toolbelt_agentsession SET state = ?", [f"b{turn}"])
            seen += [await state(probe), await state(probe)]
        await probe.close()
        writer.execute("UPDATE toolbelt_agentsession SET state = 'c'")
        seen.append(await state(probe))
        await probe.close()
        writer.close()
        return seen

    assert asyncio.run(main()) == ["a0", "b0", "b0", "a1", "b1", "b1", "a2", "b2", "b2", "c"]


def test_a_writer_holds_no_look_up_and_eyes_cannot_write(file):
    one = file("one")

    async def main() -> str | None:
        writer = sqlite3.connect(one, isolation_level=None)
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("UPDATE toolbelt_agentsession SET state = 'not yet'")
        probe = sqlite.StateProbe(one)
        try:
            seen = await state(probe)
            with pytest.raises(sqlite3.OperationalError, match="readonly"):
                probe._cursor().execute("DELETE FROM toolbelt_agent")
            return seen
        finally:
            await probe.close()
            writer.close()

    assert asyncio.run(main()) == "one"


def test_a_name_with_signs_of_an_address_is_a_name(file):
    one = file("100% sure?#1")

    async def main() -> str | None:
        probe = sqlite.StateProbe(one)
        try:
            return await state(probe)
        finally:
            await probe.close()

    assert asyncio.run(main()) == "100% sure?#1"


@ON_SQLITE
def test_a_database_in_memory_has_no_eyes(monkeypatch):
    monkeypatch.setitem(connection.settings_dict, "NAME", ":memory:")
    assert state_probe.open_probe() is None


@ON_POSTGRESQL
@pytest.mark.django_db(transaction=True)
def test_those_who_wait_share_the_statement_that_begins_after_they_came(monkeypatch):
    token(agent=factories.agent())
    asked: list[int] = []
    found, begun = postgresql.StateProbe._results, asyncio.Event()

    async def counted(probe: Any, questions: Any) -> Any:
        asked.append(len(questions))
        begun.set()
        return await found(probe, questions)

    monkeypatch.setattr(postgresql.StateProbe, "_results", counted)

    async def main() -> list[Any]:
        probe = state_probe.open_probe()
        assert probe is not None
        first = asyncio.create_task(probe.read(PREFIX, "ada", "first"))
        await begun.wait()
        others = [probe.read(PREFIX, "ada" if n % 2 else "bob", f"s{n % 4}") for n in range(6)]
        seen = await asyncio.gather(first, *others)
        await probe.close()
        return seen

    seen = asyncio.run(main())
    assert asked == [1, 4]
    assert [one is not None for one in seen] == [True, False, True, False, True, False, True]


def test_a_server_that_is_not_there_is_asked_once_in_a_while():
    probe = postgresql.StateProbe({"host": "127.0.0.1", "port": 1, "dbname": "none", "connect_timeout": 5})
    tried: list[object] = []
    connect = psycopg.AsyncConnection.connect

    async def counted(**parameters: Any) -> Any:
        tried.append(parameters)
        return await connect(**parameters)

    async def main() -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(psycopg.AsyncConnection, "connect", counted)
            patch.setattr(postgresql, "PAUSE_SECONDS", 1000.0)
            for _ in range(3):
                with pytest.raises(state_probe.UnreachableError):
                    await probe.read(PREFIX, "ada", None)
        await probe.close()

    asyncio.run(main())
    assert len(tried) == 1


def test_behind_a_pooler_that_keeps_no_statements_none_is_prepared(monkeypatch):
    async def found(probe: Any, questions: Any) -> Any:
        raise psycopg.errors.InvalidSqlStatementName("it does not exist")

    monkeypatch.setattr(postgresql.StateProbe, "_results", found)

    async def main() -> Any:
        probe = postgresql.StateProbe({"prepare_threshold": 0})
        with pytest.raises(state_probe.UnreachableError):
            await probe.read(PREFIX, "ada", None)
        return probe._parameters["prepare_threshold"]

    assert asyncio.run(main()) is None


@pytest.mark.parametrize("trouble", [TypeError("a defect"), asyncio.CancelledError()])
def test_whatever_goes_wrong_nobody_waits_for_ever(monkeypatch, trouble):
    async def found(probe: Any, questions: Any) -> Any:
        raise trouble

    monkeypatch.setattr(postgresql.StateProbe, "_results", found)

    async def main() -> None:
        probe = postgresql.StateProbe({})
        async with asyncio.timeout(20):
            for _ in range(2):
                with pytest.raises((state_probe.UnreachableError, asyncio.CancelledError)):
                    await probe.read(PREFIX, "ada", None)

    asyncio.run(main())


@ON_POSTGRESQL
@pytest.mark.django_db(transaction=True)
def test_a_connection_that_was_cut_is_replaced_and_nobody_notices():
    token(agent=factories.agent())

    async def main() -> None:
        probe = state_probe.open_probe()
        assert isinstance(probe, postgresql.StateProbe)
        await probe.read(PREFIX, "ada", None)
        assert probe._open is not None
        pid = probe._open.connection.info.backend_pid
        await asyncio.to_thread(_cut, pid)
        assert await probe.read(PREFIX, "ada", None) is not None
        await probe.close()

    asyncio.run(main())


def _cut(pid: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 1000)", [pid])
    connection.close()
