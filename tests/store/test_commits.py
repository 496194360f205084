"""Tests that the watch notices every commit, and rereads only what changed."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection

from tests import concurrently, factories
from toolbelt import models
from toolbelt.store import commits
from toolbelt.store.commits import postgresql, sqlite

ON_SQLITE = pytest.mark.skipif("connection.vendor != 'sqlite'", reason="about SQLite")
ON_POSTGRESQL = pytest.mark.skipif("connection.vendor != 'postgresql'", reason="about PostgreSQL")


def run_watching(scenario: Callable[[Any], Awaitable[Any]]) -> Any:
    """Run a scenario with a watch on the test database."""

    async def main() -> Any:
        watch = commits.watch()
        assert watch is not None
        try:
            async with asyncio.timeout(20):
                return await scenario(watch)
        finally:
            await watch.close()

    return asyncio.run(main())


def sql(statement: str) -> Callable[[], None]:
    def execute() -> None:
        with connection.cursor() as cursor:
            cursor.execute(statement)

    return execute


WRITES: tuple[Callable[[], object], ...] = (
    lambda: models.Agent.objects.filter(key="ada").update(title="x"),
    lambda: factories.agent("bob"),
    lambda: models.Agent.objects.bulk_create([models.Agent(key="carl"), models.Agent(key="dora")]),
    lambda: models.Agent.objects.filter(key="carl").update(key="karl"),
    lambda: models.Agent.objects.filter(key="dora").delete(),
    lambda: factories.tool("new"),
    lambda: models.AgentSession.objects.create(agent=models.Agent.objects.get(key="ada"), key="s"),
    sql("DELETE FROM toolbelt_agentrevision"),
    lambda: models.Agent.objects.update(title="y"),
    sql("DELETE FROM toolbelt_revision"),
    lambda: models.Agent.objects.filter(key="ada").update(title="z"),
)


@pytest.mark.django_db(transaction=True)
def test_an_incremental_read_equals_a_full_read():
    factories.everything()

    async def scenario(watch: commits.Watch) -> None:
        await watch.read()
        for write in WRITES:
            await concurrently.do(write)
            other = commits.watch()
            assert other is not None
            assert await watch.read() == await other.read()
            await other.close()

    run_watching(scenario)


@pytest.mark.django_db(transaction=True)
def test_a_wait_ends_with_a_commit_or_a_timeout():
    factories.agent()

    async def scenario(watch: commits.Watch) -> tuple[frozenset[str], frozenset[str]]:
        known = await watch.read()
        await watch.wait(0)
        unmoved = await watch.read()
        waiting = asyncio.create_task(watch.wait(1000))
        await concurrently.do(WRITES[0])
        await waiting
        return unmoved.moved_since(known), (await watch.read()).moved_since(known)

    assert run_watching(scenario) == (frozenset(), frozenset({"ada"}))


@pytest.mark.django_db(transaction=True)
def test_ends_of_grants_and_blocks_are_listed_earliest_first():
    factories.everything()
    models.ToolkitSwitch.objects.update(ends="2031-01-01T10:00:00.5Z")
    models.ToolOverride.objects.update(ends="2030-01-01T10:00:00Z")
    models.Tool.objects.update(blocked=True, block_ends="2032-01-01T10:00:00Z")
    models.Toolkit.objects.update(blocked=True, block_ends="2033-01-01T10:00:00Z")
    models.Plugin.objects.update(blocked=True, block_ends="2032-01-01T10:00:00Z")

    async def scenario(watch: commits.Watch) -> list[tuple[str, str]]:
        return [(at.isoformat(), key) for at, key in (await watch.read()).ends]

    assert run_watching(scenario) == [
        ("2030-01-01T10:00:00+00:00", "ada"),
        ("2031-01-01T10:00:00.500000+00:00", "ada"),
        ("2032-01-01T10:00:00+00:00", commits.CATALOG),
        ("2033-01-01T10:00:00+00:00", commits.CATALOG),
    ]


@ON_SQLITE
@pytest.mark.django_db(transaction=True)
def test_a_commit_of_this_process_ends_a_wait_without_polling(monkeypatch):
    monkeypatch.setattr(sqlite, "POLL_SECONDS", 1000)

    async def scenario(watch: commits.Watch) -> None:
        await watch.read()
        waiting = asyncio.create_task(watch.wait(2000))
        await asyncio.sleep(0)
        await asyncio.to_thread(commits.committed)
        await waiting

    run_watching(scenario)


def test_a_notifier_with_a_closed_loop_does_not_block_other_notifiers():
    notified: list[bool] = []
    closed = asyncio.new_event_loop()
    closed.close()
    notifiers = [
        commits.CommitNotifier(lambda: closed.call_soon_threadsafe(print)),
        commits.CommitNotifier(lambda: notified.append(True)),
    ]
    commits.committed()
    assert notified == [True]
    assert len(notifiers) == 2


def test_a_missing_file_is_unreachable_until_it_exists(tmp_path):
    file = tmp_path / "db"

    async def main() -> int:
        watch = sqlite.Watch(file)
        for act in (watch.read, lambda: watch.wait(1)):
            with pytest.raises(commits.UnreachableError):
                await act()
        _make(file)
        try:
            return (await watch.read()).number
        finally:
            await watch.close()

    assert asyncio.run(main()) == 7


def test_a_replaced_file_is_read_completely(tmp_path):
    file, other = tmp_path / "db", tmp_path / "other"
    _make(file, "before")
    _make(other, "after")

    async def main() -> list[Any]:
        watch = sqlite.Watch(file)
        readings = [await watch.read()]
        other.rename(file)
        # The revision number is the same in both files.
        await watch.wait(1000)
        readings.append(await watch.read())
        await watch.close()
        return [reading.catalog.stamp for reading in readings]

    assert asyncio.run(main()) == ["before", "after"]


def _make(file: Path, stamp: str = "s") -> None:
    database = sqlite3.connect(file)
    database.executescript("""
        CREATE TABLE toolbelt_revision (id, number, catalog_number, catalog_stamp);
        CREATE TABLE toolbelt_agentrevision (agent_id, number, stamp);
        CREATE TABLE toolbelt_agent (id, key);
        CREATE TABLE toolbelt_toolkitswitch (agent_id, ends);
        CREATE TABLE toolbelt_tooloverride (agent_id, ends);
        CREATE TABLE toolbelt_plugin (block_ends);
        CREATE TABLE toolbelt_toolkit (block_ends);
        CREATE TABLE toolbelt_tool (block_ends);
    """)
    database.execute("INSERT INTO toolbelt_revision VALUES (1, 7, 7, ?)", [stamp])
    database.commit()
    database.close()


@ON_SQLITE
def test_an_in_memory_database_is_not_watched(monkeypatch):
    monkeypatch.setitem(connection.settings_dict, "NAME", ":memory:")
    assert commits.watch() is None


def test_a_missing_server_is_unreachable():
    async def main() -> None:
        watch = postgresql.Watch({"host": "127.0.0.1", "port": 1, "dbname": "none", "connect_timeout": 5})
        with pytest.raises(commits.UnreachableError):
            await watch.read()
        await watch.wait(0)
        await watch.close()

    asyncio.run(main())


@ON_POSTGRESQL
@pytest.mark.django_db(transaction=True)
def test_a_terminated_connection_is_reopened():
    factories.agent()

    async def scenario(watch: Any) -> frozenset[str]:
        known = await watch.read()
        pid = watch._open.info.backend_pid
        await concurrently.do(sql(f"SELECT pg_terminate_backend({pid}, 1000)"))
        with pytest.raises(commits.UnreachableError):
            await watch.wait(1000)
        await concurrently.do(WRITES[0])
        moved: frozenset[str] = (await watch.read()).moved_since(known)
        return moved

    assert run_watching(scenario) == frozenset({"ada"})


@ON_POSTGRESQL
@pytest.mark.django_db(transaction=True)
def test_missing_notifications_shorten_the_polling_interval(monkeypatch):
    """A pooler that gives each transaction another connection loses notifications."""
    monkeypatch.setattr(postgresql, "POLL_SECONDS", 0.01)
    factories.agent()

    async def scenario(watch: Any) -> tuple[float, float]:
        await watch.read()
        await watch._open.execute("UNLISTEN *")
        await concurrently.do(WRITES[0])
        await watch.wait(1000)
        await watch.read()
        pause_without_notifications = watch._pause
        await watch._open.execute("LISTEN toolbelt_revision")
        monkeypatch.setattr(postgresql, "POLL_SECONDS", 1000)
        watch._pause = 1000
        waiting = asyncio.create_task(watch.wait(1000))
        await concurrently.do(WRITES[-1])
        await waiting
        await watch.read()
        return pause_without_notifications, watch._pause

    assert run_watching(scenario) == (postgresql.POLL_SECONDS_WITHOUT_NOTIFICATIONS, 1000)


@ON_POSTGRESQL
@pytest.mark.django_db(transaction=True)
def test_the_watch_assumes_the_configured_role(monkeypatch):
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user")
        role = cursor.fetchone()[0]
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "assume_role", role)

    async def scenario(watch: Any) -> str:
        await watch.read()
        cursor = await watch._open.execute("SHOW role")
        return str((await cursor.fetchone())[0])

    assert run_watching(scenario) == role


@ON_POSTGRESQL
@pytest.mark.django_db(transaction=True)
def test_a_read_cancelled_while_starting_to_listen_closes_its_connection(monkeypatch):
    opened: list[psycopg.AsyncConnection[Any]] = []
    has_started = asyncio.Event()

    class Slow(psycopg.AsyncConnection[Any]):
        async def execute(self, *query: Any, **about: Any) -> Any:
            opened.append(self)
            has_started.set()
            await asyncio.Event().wait()

    monkeypatch.setattr(psycopg, "AsyncConnection", Slow)

    async def scenario(watch: commits.Watch) -> None:
        reading = asyncio.create_task(watch.read())
        await has_started.wait()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading

    run_watching(scenario)
    assert opened[0].closed
