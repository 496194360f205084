"""Tests that each follower of an agent is notified of every commit that may concern it, and of no other."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import transaction

from tests import concurrently
from tests.api.conftest import SETUP
from tests.runtime import following
from tests.runtime.following import stored as stored
from tests.store.conftest import Process
from toolbelt import models
from toolbelt.control.access import switches
from toolbelt.runtime import feed, surfaces
from toolbelt.store import revisions


@pytest.fixture(scope="module")
def another_process(django_db_setup: None) -> Iterator[Process]:
    """Yield a process that flips to each true or false that it reads."""
    process = Process(concurrently.FLIPS)
    yield process
    assert process.end() == 0


def describe_the_clock() -> None:
    models.Tool.objects.filter(key="clock").update(description="Tell the time.")


def retitle(agent: str) -> Callable[[], object]:
    return lambda: models.Agent.objects.filter(key=agent).update(title="x")


def test_a_flip_is_heard_by_whoever_follows_the_agent_and_by_nobody_else(stored):
    async def story() -> list[Any]:
        async with feed.changes("ada") as ada, feed.changes("bob") as bob, feed.all_changes() as all_of_it:
            heard = []
            for on in (True, False, None):
                await concurrently.do(following.flip("ada", on))
                heard.append((await following.told(ada), await following.told(all_of_it)))
            await concurrently.do(following.flip("bob", False))
            # Had bob's follower heard of ada, that would have come first.
            heard.append((await following.told(bob), await following.told(all_of_it)))
            return heard

    assert following.run(story) == [(["ada"], ["ada"])] * 3 + [(["bob"], ["bob"])]


def test_what_is_written_to_the_catalog_is_heard_by_everyone(stored):
    async def story() -> list[Any]:
        async with feed.changes("ada") as ada, feed.all_changes() as all_of_it:
            await concurrently.do(describe_the_clock)
            return [await following.told(ada), await following.told(all_of_it)]

    assert following.run(story) == [["catalog"], ["catalog"]]


def test_another_process_is_heard(stored, another_process):
    async def story() -> list[Any]:
        heard = []
        async with feed.changes("ada") as ada, feed.changes("bob") as bob:
            for on in ("true", "false", "null", "true"):
                await asyncio.to_thread(another_process.ask, on)
                heard.append(await following.told(ada))
            await concurrently.do(retitle("bob"))
            heard.append(await following.told(bob))
        return heard

    assert following.run(story) == [["ada"]] * 4 + [["bob"]]


def test_what_was_written_by_hand_is_heard(stored):
    """The write bypassed this project's code, so no commit was announced."""

    async def story() -> list[str]:
        async with feed.changes("ada") as ada:
            await concurrently.do(retitle("ada"))
            return await following.told(ada)

    assert following.run(story) == ["ada"]


def test_what_is_rolled_back_is_not_heard(stored):
    def rolled_back() -> None:
        with transaction.atomic():
            following.flip("ada", True)()
            retitle("ada")()
            transaction.set_rollback(True)

    async def story() -> list[str]:
        async with feed.all_changes() as all_of_it:
            await concurrently.do(rolled_back)
            await concurrently.do(following.flip("bob", False))
            return await following.told(all_of_it)

    assert following.run(story) == ["bob"]


def test_a_turn_stands_for_all_that_was_committed_before_it(stored):
    async def story() -> list[Any]:
        async with feed.all_changes() as all_of_it, feed.changes("bob") as bob:
            for on in (True, False, True):
                await concurrently.do(following.flip("ada", on))
            await concurrently.do(following.flip("bob", False))
            await following.told(bob)
            heard = [await following.told(all_of_it)]
            await concurrently.do(describe_the_clock)
            return [*heard, await following.told(all_of_it)]

    assert following.run(story) == [["ada", "bob"], ["catalog"]]


def test_what_was_committed_before_is_not_told_and_what_comes_after_is(stored):
    async def story() -> list[str]:
        await concurrently.do(following.flip("bob", False))
        async with feed.all_changes() as all_of_it:
            await concurrently.do(following.flip("ada", True))
            return await following.told(all_of_it)

    assert following.run(story) == ["ada"]


def test_whoever_does_not_wait_for_the_watch_gets_a_first_turn_when_it_begins(stored):
    async def story() -> feed.Changes:
        return await anext(feed.changes("ada"))

    assert following.run(story).catalog


def test_a_follower_knows_the_revision_that_concerns_it(stored):
    async def story() -> tuple[bool, bool, bool]:
        async with feed.changes("ada") as ada, feed.all_changes() as all_of_it:
            own, all_before = ada.revision, all_of_it.revision
            await concurrently.do(following.flip("bob", False))
            number = (await anext(all_of_it)).revision
            passed = ada.revision == own, number == all_of_it.revision == all_before + 1
            await concurrently.do(following.flip("ada", True))
            await following.told(ada)
            return *passed, ada.revision == all_of_it.revision == all_before + 2

    assert following.run(story) == (True, True, True)


def test_agents_that_go_come_or_are_renamed_are_heard(stored):
    @transaction.atomic
    def gone() -> None:
        for model in (models.ToolkitSwitch, models.AgentToolkit, models.AgentTool):
            model._default_manager.filter(agent__key="bob").delete()
        models.Agent.objects.filter(key="bob").delete()

    async def story() -> list[Any]:
        async with feed.changes("ada") as ada, feed.all_changes() as all_of_it:
            heard = []
            for act in (
                gone,
                lambda: models.Agent.objects.create(key="carl"),
                lambda: models.Agent.objects.filter(key="carl").update(key="carla"),
            ):
                await concurrently.do(act)
                heard.append(await following.told(all_of_it))
            # A key is part of the catalog, so of these only the last one may concern ada.
            return [*heard, await following.told(ada)]

    assert following.run(story) == [
        ["bob"],
        ["carl"],
        ["carl", "carla", "catalog"],
        ["carl", "carla", "catalog"],
    ]


def test_a_grant_that_ends_is_a_turn_when_it_does_though_nobody_writes(stored):
    rows = models.ToolkitSwitch.objects.filter(agent__key="ada", toolkit__key="reading")
    soon: list[dt.datetime] = []
    numbers: list[int] = []

    def grant() -> None:
        switches.flip(SETUP.replace(confirm=True), "ada", "reading", True)
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
            await concurrently.do(grant)
            heard = await following.told(ada)
            while dt.datetime.now(dt.UTC) < soon[0]:
                heard = await following.told(ada)
            await concurrently.do(look)
            await concurrently.do(retitle("bob"))
            # Had bob's follower heard of ada, that would have come first.
            return [heard, "bob" in await following.told(bob)]

    assert following.run(story) == [["ada"], True]
    assert numbers[0] == numbers[1]
