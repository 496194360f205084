"""Tests that each follower of an agent is served, and ended, when the database is away or the feed ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tests.runtime import following
from tests.runtime.following import stored as stored
from toolbelt.runtime import feed
from toolbelt.store import commits


class Shaky:
    """A watch over a database that is away for a given number of reads."""

    def __init__(self, *coming: commits.State | None) -> None:
        self.coming = list(coming)
        self.closed = asyncio.Semaphore(0)

    async def wait(self, seconds: float) -> None:
        if not self.coming:
            await asyncio.sleep(seconds)

    async def read(self) -> commits.State:
        state = self.coming.pop(0)
        if state is None:
            raise commits.UnreachableError("gone")
        return state

    async def close(self) -> None:
        self.closed.release()


def state(ada: int, bob: int) -> commits.State:
    agents = {"ada": commits.Version(ada, str(ada)), "bob": commits.Version(bob, str(bob))}
    return commits.State(number=max(ada, bob), agents=agents)


@pytest.fixture
def watches(monkeypatch: pytest.MonkeyPatch) -> Callable[[Shaky], Shaky]:
    """Return what puts a watch in the place of the database's."""
    for pause in ("FIRST_PAUSE", "GAP"):
        monkeypatch.setattr(feed, pause, 0)

    def put(watch: Shaky) -> Shaky:
        monkeypatch.setattr(commits, "watch", lambda: watch)
        return watch

    return put


def test_a_database_that_is_away_is_tried_again_and_what_was_missed_is_told(watches, caplog):
    watches(Shaky(state(1, 1), None, None, None, state(2, 1)))

    async def story() -> list[str]:
        async with feed.all_changes() as all_of_it:
            return await following.told(all_of_it)

    assert following.run(story) == ["ada"]
    assert caplog.text.count("the database cannot be read") == 1


def test_a_database_that_was_away_from_the_start_leaves_everyone_a_turn(watches):
    watch = watches(Shaky(None))

    async def story() -> bool:
        async with feed.changes("ada") as ada:
            watch.coming = [None, state(1, 1)]
            return (await anext(ada)).catalog

    assert following.run(story)


def test_a_database_that_nobody_else_sees_is_followed_in_vain(monkeypatch, caplog):
    monkeypatch.setattr(commits, "watch", lambda: None)

    async def story() -> None:
        async with feed.changes("ada"):
            pass

    following.run(story)
    assert "no other connection sees this database" in caplog.text


def test_everyone_s_following_ends_when_the_feed_does(watches):
    watch = watches(Shaky(state(1, 1)))

    async def story() -> int:
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
        # A later follower ends at once.
        await follow(feed.all_changes())
        return turns

    assert following.run(story) == 0
    assert not watch.closed.locked()


def test_the_database_is_watched_only_while_somebody_follows(watches, monkeypatch):
    monkeypatch.setattr(feed, "IDLE", 0)
    watch = watches(Shaky(*[state(1, 1)] * 1000))

    async def story() -> None:
        for _ in range(2):
            async with feed.changes("ada"):
                assert watch.closed.locked()
            # One who lets go of it without a word does not follow, either.
            kept = feed.changes("bob")
            del kept
            await watch.closed.acquire()

    following.run(story)


class Unreadable:
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
def test_an_error_that_nobody_expects_keeps_nobody_waiting_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "FIRST_PAUSE", 0.0)

    async def story() -> feed.Changes:
        unreadable = Unreadable()
        monkeypatch.setattr(commits, "watch", lambda: unreadable)
        async with feed.changes("ada") as changes:
            return await anext(changes)

    assert "ada" in following.run(story).agents
