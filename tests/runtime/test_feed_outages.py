"""Tests how followers are notified and ended when the database is unreachable or the feed ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tests.runtime import following
from tests.runtime.following import stored as stored
from toolbelt.runtime import feed
from toolbelt.store import commits


class ScriptedWatch:
    """A watch that reads these states in order; None means an unreachable database."""

    def __init__(self, *states: commits.State | None) -> None:
        self.states = list(states)
        self.closed = asyncio.Semaphore(0)

    async def wait(self, seconds: float) -> None:
        if not self.states:
            await asyncio.sleep(seconds)

    async def read(self) -> commits.State:
        state = self.states.pop(0)
        if state is None:
            raise commits.UnreachableError("gone")
        return state

    async def close(self) -> None:
        self.closed.release()


def state(ada: int, bob: int) -> commits.State:
    agents = {"ada": commits.Version(ada, str(ada)), "bob": commits.Version(bob, str(bob))}
    return commits.State(number=max(ada, bob), agents=agents)


@pytest.fixture
def watches(monkeypatch: pytest.MonkeyPatch) -> Callable[[ScriptedWatch], ScriptedWatch]:
    """Return a function that replaces the watch over the database."""
    for pause in ("FIRST_PAUSE", "GAP"):
        monkeypatch.setattr(feed, pause, 0)

    def put(watch: ScriptedWatch) -> ScriptedWatch:
        monkeypatch.setattr(commits, "watch", lambda: watch)
        return watch

    return put


def test_changes_missed_during_an_outage_are_announced_after_it(watches, caplog):
    watches(ScriptedWatch(state(1, 1), None, None, None, state(2, 1)))

    async def scenario() -> list[str]:
        async with feed.all_changes() as all_agents:
            return await following.next_change(all_agents)

    assert following.run(scenario) == ["ada"]
    assert caplog.text.count("the database cannot be read") == 1


def test_a_database_unreachable_at_the_start_gives_each_follower_a_notification(watches):
    watch = watches(ScriptedWatch(None))

    async def scenario() -> bool:
        async with feed.changes("ada") as ada:
            watch.states = [None, state(1, 1)]
            return (await anext(ada)).catalog

    assert following.run(scenario)


def test_following_a_private_database_logs_a_warning(monkeypatch, caplog):
    monkeypatch.setattr(commits, "watch", lambda: None)

    async def scenario() -> None:
        async with feed.changes("ada"):
            pass

    following.run(scenario)
    assert "no other connection sees this database" in caplog.text


def test_closing_the_feed_ends_all_followers(watches):
    watch = watches(ScriptedWatch(state(1, 1)))

    async def scenario() -> int:
        turns = 0

        async def follow(following: feed.Following) -> None:
            nonlocal turns
            async with following:
                async for _ in following:
                    turns += 1

        following = [asyncio.create_task(follow(feed.changes("ada"))) for _ in range(3)]
        async with feed.all_changes():
            pass
        await feed.close()
        await asyncio.gather(*following)
        # A later follower ends immediately.
        await follow(feed.all_changes())
        return turns

    assert following.run(scenario) == 0
    assert not watch.closed.locked()


def test_the_database_is_watched_only_while_there_are_followers(watches, monkeypatch):
    monkeypatch.setattr(feed, "IDLE", 0)
    watch = watches(ScriptedWatch(*[state(1, 1)] * 1000))

    async def scenario() -> None:
        for _ in range(2):
            async with feed.changes("ada"):
                assert watch.closed.locked()
            # A follower that was dropped without being closed does not count, either.
            dropped = feed.changes("bob")
            del dropped
            await watch.closed.acquire()

    following.run(scenario)


class FailingWatch:
    """A watch that fails unexpectedly once, and then works."""

    def __init__(self) -> None:
        self._watch = commits.watch()
        self._failures = 1

    async def read(self) -> commits.State:
        if self._failures:
            self._failures -= 1
            raise ValueError("a row that cannot be read")
        assert self._watch is not None
        return await self._watch.read()

    async def wait(self, seconds: float) -> None:
        assert self._watch is not None
        await self._watch.wait(seconds)

    async def close(self) -> None:
        assert self._watch is not None
        await self._watch.close()


@pytest.mark.usefixtures("stored")
def test_an_unexpected_error_of_the_watch_does_not_block_followers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "FIRST_PAUSE", 0.0)

    async def scenario() -> feed.Changes:
        unreadable = FailingWatch()
        monkeypatch.setattr(commits, "watch", lambda: unreadable)
        async with feed.changes("ada") as changes:
            return await anext(changes)

    assert "ada" in following.run(scenario).agents
