"""Does everyone who follows an agent hear of each commit that may concern it, from wherever, and of no other?"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from django.db import connection, transaction

from tests.api.conftest import BELT, SETUP
from tests.store.conftest import Process
from toolbelt import models
from toolbelt.control import belts, switches
from toolbelt.runtime import feed, surfaces
from toolbelt.store import commits, revisions

# Flips one switch as often as there are lines.
_FLIP = """
import json, sys
import django
django.setup()
from toolbelt.control import actors, switches
actor = actors.Actor(name="olive", via="command")
for line in sys.stdin:
    switches.flip(actor, "ada", "reading", json.loads(line), confirm=True)
    print(json.dumps({}), flush=True)
"""


@pytest.fixture(scope="module")
def another_process(django_db_setup: None) -> Iterator[Process]:
    """Give a process that is told true or false, and flips."""
    process = Process(_FLIP)
    yield process
    assert process.end() == 0


@pytest.fixture
def stored(transactional_db: None) -> None:
    belts.import_(SETUP, BELT)


def run(story: Callable[[], Awaitable[Any]]) -> Any:
    """Let a story happen on an event loop that ends with it; nothing in it takes long."""

    async def main() -> Any:
        try:
            async with asyncio.timeout(20):
                return await story()
        finally:
            await feed.close()

    return asyncio.run(main())


async def do(act: Callable[[], object]) -> None:
    """Write, in a thread as Django does."""

    def acted() -> None:
        try:
            act()
        finally:
            connection.close()

    await asyncio.to_thread(acted)


def flip(agent: str, on: bool | None) -> Callable[[], object]:
    return lambda: switches.flip(SETUP, agent, "reading", on, confirm=True)


def describe_the_clock() -> None:
    models.Tool.objects.filter(key="clock").update(description="Tell the time.")


def retitle(agent: str) -> Callable[[], object]:
    return lambda: models.Agent.objects.filter(key=agent).update(title="x")


async def told(following: feed.Following) -> list[str]:
    """Give whom the next turn speaks of."""
    changes = await anext(following)
    return sorted(changes.agents | ({"catalog"} if changes.catalog else set()))


def test_a_flip_is_heard_by_whoever_follows_the_agent_and_by_nobody_else(stored):
    async def story() -> list[Any]:
        async with feed.changes("ada") as ada, feed.changes("bob") as bob, feed.anything() as all_of_it:
            heard = []
            for on in (True, False, None):
                await do(flip("ada", on))
                heard.append((await told(ada), await told(all_of_it)))
            await do(flip("bob", False))
            # Had bob's follower heard of ada, that would have come first.
            heard.append((await told(bob), await told(all_of_it)))
            return heard

    assert run(story) == [(["ada"], ["ada"])] * 3 + [(["bob"], ["bob"])]


def test_what_is_written_to_the_catalog_is_heard_by_everyone(stored):
    async def story() -> list[Any]:
        async with feed.changes("ada") as ada, feed.anything() as all_of_it:
            await do(describe_the_clock)
            return [await told(ada), await told(all_of_it)]

    assert run(story) == [["catalog"], ["catalog"]]


def test_another_process_is_heard(stored, another_process):
    async def story() -> list[Any]:
        heard = []
        async with feed.changes("ada") as ada, feed.changes("bob") as bob:
            for on in ("true", "false", "null", "true"):
                await asyncio.to_thread(another_process.ask, on)
                heard.append(await told(ada))
            await do(retitle("bob"))
            heard.append(await told(bob))
        return heard

    assert run(story) == [["ada"]] * 4 + [["bob"]]


def test_what_was_written_by_hand_is_heard(stored):
    """No door of this project was used: nobody said that something was committed."""

    async def story() -> list[str]:
        async with feed.changes("ada") as ada:
            await do(retitle("ada"))
            return await told(ada)

    assert run(story) == ["ada"]


def test_what_is_rolled_back_is_not_heard(stored):
    def rolled_back() -> None:
        with transaction.atomic():
            flip("ada", True)()
            retitle("ada")()
            transaction.set_rollback(True)

    async def story() -> list[str]:
        async with feed.anything() as all_of_it:
            await do(rolled_back)
            await do(flip("bob", False))
            return await told(all_of_it)

    assert run(story) == ["bob"]


def test_a_turn_stands_for_all_that_was_committed_before_it(stored):
    async def story() -> list[Any]:
        async with feed.anything() as all_of_it, feed.changes("bob") as bob:
            for on in (True, False, True):
                await do(flip("ada", on))
            await do(flip("bob", False))
            await told(bob)
            heard = [await told(all_of_it)]
            await do(describe_the_clock)
            return [*heard, await told(all_of_it)]

    assert run(story) == [["ada", "bob"], ["catalog"]]


def test_what_was_committed_before_is_not_told_and_what_comes_after_is(stored):
    async def story() -> list[str]:
        await do(flip("bob", False))
        async with feed.anything() as all_of_it:
            await do(flip("ada", True))
            return await told(all_of_it)

    assert run(story) == ["ada"]


def test_whoever_does_not_wait_for_the_watch_gets_a_first_turn_when_it_begins(stored):
    async def story() -> feed.Changes:
        return await anext(feed.changes("ada"))

    assert run(story).catalog


def test_a_follower_knows_the_revision_that_concerns_it(stored):
    async def story() -> tuple[bool, bool, bool]:
        async with feed.changes("ada") as ada, feed.anything() as all_of_it:
            own, all_before = ada.revision, all_of_it.revision
            await do(flip("bob", False))
            number = (await anext(all_of_it)).revision
            passed = ada.revision == own, number == all_of_it.revision == all_before + 1
            await do(flip("ada", True))
            await told(ada)
            return *passed, ada.revision == all_of_it.revision == all_before + 2

    assert run(story) == (True, True, True)


def test_agents_that_go_come_or_are_renamed_are_heard(stored):
    @transaction.atomic
    def gone() -> None:
        for model in (models.ToolkitSwitch, models.AgentToolkit, models.AgentTool):
            model._default_manager.filter(agent__key="bob").delete()
        models.Agent.objects.filter(key="bob").delete()

    async def story() -> list[Any]:
        async with feed.changes("ada") as ada, feed.anything() as all_of_it:
            heard = []
            for act in (
                gone,
                lambda: models.Agent.objects.create(key="carl"),
                lambda: models.Agent.objects.filter(key="carl").update(key="carla"),
            ):
                await do(act)
                heard.append(await told(all_of_it))
            # A key is part of the catalog, so of these only the last one may concern ada.
            return [*heard, await told(ada)]

    assert run(story) == [["bob"], ["carl"], ["carl", "carla", "catalog"], ["carl", "carla", "catalog"]]


def test_a_grant_that_ends_is_a_turn_when_it_does_though_nobody_writes(stored):
    rows = models.ToolkitSwitch.objects.filter(agent__key="ada", toolkit__key="reading")
    soon: list[dt.datetime] = []
    numbers: list[int] = []

    def grant() -> None:
        switches.flip(SETUP, "ada", "reading", True, confirm=True)
        soon.append(dt.datetime.now(dt.UTC) + dt.timedelta(seconds=0.3))
        rows.update(ends=soon[0])
        numbers.append(revisions.number())

    def look() -> None:
        numbers.append(revisions.number())
        assert surfaces.ask("ada").resolution.decision("kb__find").code != "switch-on"
        assert rows.get().on
        assert not models.AuditEntry.objects.filter(action="switch.end").exists()

    async def story() -> list[Any]:
        async with feed.changes("ada") as ada, feed.changes("bob") as bob:
            await do(grant)
            heard = await told(ada)
            while dt.datetime.now(dt.UTC) < soon[0]:
                heard = await told(ada)
            await do(look)
            await do(retitle("bob"))
            # Had bob's follower heard of ada, that would have come first.
            return [heard, "bob" in await told(bob)]

    assert run(story) == [["ada"], True]
    assert numbers[0] == numbers[1]


class Shaky:
    """A watch over a database that is away as often as it is told."""

    def __init__(self, *coming: commits.State | None) -> None:
        self.coming = list(coming)
        self.closed = asyncio.Semaphore(0)

    async def wait(self, seconds: float) -> None:
        if not self.coming:
            await asyncio.sleep(seconds)

    async def read(self) -> commits.State:
        state = self.coming.pop(0)
        if state is None:
            raise commits.Unreachable("gone")
        return state

    async def close(self) -> None:
        self.closed.release()


def state(ada: int, bob: int) -> commits.State:
    agents = {"ada": commits.Place(ada, str(ada)), "bob": commits.Place(bob, str(bob))}
    return commits.State(number=max(ada, bob), agents=agents)


@pytest.fixture
def watches(monkeypatch: pytest.MonkeyPatch) -> Callable[[Shaky], Shaky]:
    """Give what puts a watch in the place of the database's."""
    for pause in ("FIRST_PAUSE", "GAP"):
        monkeypatch.setattr(feed, pause, 0)

    def put(watch: Shaky) -> Shaky:
        monkeypatch.setattr(commits, "watch", lambda: watch)
        return watch

    return put


def test_a_database_that_is_away_is_tried_again_and_what_was_missed_is_told(watches, caplog):
    watches(Shaky(state(1, 1), None, None, None, state(2, 1)))

    async def story() -> list[str]:
        async with feed.anything() as all_of_it:
            return await told(all_of_it)

    assert run(story) == ["ada"]
    assert caplog.text.count("the database cannot be read") == 1


def test_a_database_that_was_away_from_the_start_leaves_everyone_a_turn(watches):
    watch = watches(Shaky(None))

    async def story() -> bool:
        async with feed.changes("ada") as ada:
            watch.coming = [None, state(1, 1)]
            return (await anext(ada)).catalog

    assert run(story)


def test_a_database_that_nobody_else_sees_is_followed_in_vain(monkeypatch, caplog):
    monkeypatch.setattr(commits, "watch", lambda: None)

    async def story() -> None:
        async with feed.changes("ada"):
            pass

    run(story)
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
        async with feed.anything():
            pass
        await feed.close()
        await asyncio.gather(*following)
        # Whoever comes later finds it ended.
        await follow(feed.anything())
        return turns

    assert run(story) == 0
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

    run(story)


class Unreadable:
    """A watch that fails as nobody expects, and then is as another one."""

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

    assert "ada" in run(story).agents
