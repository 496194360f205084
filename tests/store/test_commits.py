"""The watch notices every commit, and reads as little as possible again."""

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


def run(story: Callable[[Any], Awaitable[Any]]) -> Any:
    """Run a story while the watch follows the tests' database."""

    async def main() -> Any:
        watch = commits.watch()
        assert watch is not None
        try:
            async with asyncio.timeout(20):
                return await story(watch)
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
def test_what_is_put_together_from_what_moved_is_what_is_there():
    factories.everything()

    async def story(watch: commits.Watch) -> None:
        await watch.read()
        for write in WRITES:
            await concurrently.do(write)
            other = commits.watch()
            assert other is not None
            assert await watch.read() == await other.read()
            await other.close()

    run(story)


@pytest.mark.django_db(transaction=True)
def test_a_wait_ends_with_a_commit_or_with_its_time():
    factories.agent()

    async def story(watch: commits.Watch) -> tuple[frozenset[str], frozenset[str]]:
        known = await watch.read()
        await watch.wait(0)
        unmoved = await watch.read()
        waiting = asyncio.create_task(watch.wait(1000))
        await concurrently.do(WRITES[0])
        await waiting
        return unmoved.moved_since(known), (await watch.read()).moved_since(known)

    assert run(story) == (frozenset(), frozenset({"ada"}))


@pytest.mark.django_db(transaction=True)
def test_what_ends_is_told_with_whose_it_is_the_first_first():
    factories.everything()
    models.ToolkitSwitch.objects.update(ends="2031-01-01T10:00:00.5Z")
    models.ToolOverride.objects.update(ends="2030-01-01T10:00:00Z")

    async def story(watch: commits.Watch) -> list[tuple[str, str]]:
        return [(at.isoformat(), key) for at, key in (await watch.read()).ends]

    assert run(story) == [("2030-01-01T10:00:00+00:00", "ada"), ("2031-01-01T10:00:00.500000+00:00", "ada")]


@ON_SQLITE
@pytest.mark.django_db(transaction=True)
def test_what_this_process_commits_need_not_be_found_out(monkeypatch):
    monkeypatch.setattr(sqlite, "PAUSE", 1000)

    async def story(watch: commits.Watch) -> None:
        await watch.read()
        waiting = asyncio.create_task(watch.wait(2000))
        await asyncio.sleep(0)
        await asyncio.to_thread(commits.committed)
        await waiting

    run(story)


def test_an_alarm_whose_loop_is_closed_keeps_no_other_from_ringing():
    rung: list[bool] = []
    closed = asyncio.new_event_loop()
    closed.close()
    alarms = [
        commits.CommitNotifier(lambda: closed.call_soon_threadsafe(print)),
        commits.CommitNotifier(lambda: rung.append(True)),
    ]
    commits.committed()
    assert rung == [True]
    assert len(alarms) == 2


def test_a_file_that_is_gone_cannot_be_read_and_is_when_it_is_back(tmp_path):
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


def test_another_file_in_its_place_is_read_whole(tmp_path):
    file, other = tmp_path / "db", tmp_path / "other"
    _make(file, "before")
    _make(other, "after")

    async def main() -> list[Any]:
        watch = sqlite.Watch(file)
        seen = [await watch.read()]
        other.rename(file)
        # The number is the same.
        await watch.wait(1000)
        seen.append(await watch.read())
        await watch.close()
        return [one.catalog.stamp for one in seen]

    assert asyncio.run(main()) == ["before", "after"]


def _make(file: Path, stamp: str = "s") -> None:
    made = sqlite3.connect(file)
    made.executescript("""
        CREATE TABLE toolbelt_revision (id, number, catalog_number, catalog_stamp);
        CREATE TABLE toolbelt_agentrevision (agent_id, number, stamp);
        CREATE TABLE toolbelt_agent (id, key);
        CREATE TABLE toolbelt_toolkitswitch (agent_id, ends);
        CREATE TABLE toolbelt_tooloverride (agent_id, ends);
    """)
    made.execute("INSERT INTO toolbelt_revision VALUES (1, 7, 7, ?)", [stamp])
    made.commit()
    made.close()


@ON_SQLITE
def test_a_database_in_memory_is_not_watched(monkeypatch):
    monkeypatch.setitem(connection.settings_dict, "NAME", ":memory:")
    assert commits.watch() is None


def test_a_server_that_is_not_there_cannot_be_read():
    async def main() -> None:
        watch = postgresql.Watch({"host": "127.0.0.1", "port": 1, "dbname": "none", "connect_timeout": 5})
        with pytest.raises(commits.UnreachableError):
            await watch.read()
        await watch.wait(0)
        await watch.close()

    asyncio.run(main())


@ON_POSTGRESQL
@pytest.mark.django_db(transaction=True)
def test_a_connection_that_was_cut_is_made_anew():
    factories.agent()

    async def story(watch: Any) -> frozenset[str]:
        known = await watch.read()
        pid = watch._open.info.backend_pid
        await concurrently.do(sql(f"SELECT pg_terminate_backend({pid}, 1000)"))
        with pytest.raises(commits.UnreachableError):
            await watch.wait(1000)
        await concurrently.do(WRITES[0])
        found: frozenset[str] = (await watch.read()).moved_since(known)
        return found

    assert run(story) == frozenset({"ada"})


@ON_POSTGRESQL
@pytest.mark.django_db(transaction=True)
def test_where_notifications_do_not_arrive_it_reads_often(monkeypatch):
    """As behind a pooler that gives each transaction another connection."""
    monkeypatch.setattr(postgresql, "PAUSE", 0.01)
    factories.agent()

    async def story(watch: Any) -> tuple[float, float]:
        await watch.read()
        await watch._open.execute("UNLISTEN *")
        await concurrently.do(WRITES[0])
        await watch.wait(1000)
        await watch.read()
        deaf = watch._pause
        await watch._open.execute("LISTEN toolbelt_revision")
        monkeypatch.setattr(postgresql, "PAUSE", 1000)
        watch._pause = 1000
        waiting = asyncio.create_task(watch.wait(1000))
        await concurrently.do(WRITES[-1])
        await waiting
        await watch.read()
        return deaf, watch._pause

    assert run(story) == (postgresql.DEAF_PAUSE, 1000)


@ON_POSTGRESQL
@pytest.mark.django_db(transaction=True)
def test_a_role_that_django_takes_is_taken(monkeypatch):
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user")
        role = cursor.fetchone()[0]
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "assume_role", role)

    async def story(watch: Any) -> str:
        await watch.read()
        cursor = await watch._open.execute("SHOW role")
        return str((await cursor.fetchone())[0])

    assert run(story) == role


@ON_POSTGRESQL
@pytest.mark.django_db(transaction=True)
def test_who_goes_while_it_begins_to_listen_leaves_no_connection(monkeypatch):
    opened: list[psycopg.AsyncConnection[Any]] = []
    has_begun = asyncio.Event()

    class Slow(psycopg.AsyncConnection[Any]):
        async def execute(self, *query: Any, **about: Any) -> Any:
            opened.append(self)
            has_begun.set()
            await asyncio.Event().wait()

    monkeypatch.setattr(psycopg, "AsyncConnection", Slow)

    async def story(watch: commits.Watch) -> None:
        reading = asyncio.create_task(watch.read())
        await has_begun.wait()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading

    run(story)
    assert opened[0].closed
