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
    """Yield a process that switches a toolkit to each true, false or null that it reads."""
    process = Process(concurrently.FLIPS)
    yield process
    assert process.end() == 0


def describe_the_clock() -> None:
    models.Tool.objects.filter(key="clock").update(description="Tell the time.")


def retitle(agent: str) -> Callable[[], object]:
    return lambda: models.Agent.objects.filter(key=agent).update(title="x")


def test_a_switch_change_notifies_only_followers_of_its_agent(stored):
    async def scenario() -> list[Any]:
        async with feed.changes("ada") as ada, feed.changes("bob") as bob, feed.all_changes() as all_agents:
            changes = []
            for on in (True, False, None):
                await concurrently.do(following.flip("ada", on))
                changes.append((await following.next_change(ada), await following.next_change(all_agents)))
            await concurrently.do(following.flip("bob", False))
            # If bob's follower were notified of ada, that would come first.
            changes.append((await following.next_change(bob), await following.next_change(all_agents)))
            return changes

    assert following.run(scenario) == [(["ada"], ["ada"])] * 3 + [(["bob"], ["bob"])]


def test_a_catalog_change_notifies_all_followers(stored):
    async def scenario() -> list[Any]:
        async with feed.changes("ada") as ada, feed.all_changes() as all_agents:
            await concurrently.do(describe_the_clock)
            return [await following.next_change(ada), await following.next_change(all_agents)]

    assert following.run(scenario) == [["catalog"], ["catalog"]]


def test_a_change_by_another_process_notifies_followers(stored, another_process):
    async def scenario() -> list[Any]:
        changes = []
        async with feed.changes("ada") as ada, feed.changes("bob") as bob:
            for on in ("true", "false", "null", "true"):
                await asyncio.to_thread(another_process.ask, on)
                changes.append(await following.next_change(ada))
            await concurrently.do(retitle("bob"))
            changes.append(await following.next_change(bob))
        return changes

    assert following.run(scenario) == [["ada"]] * 4 + [["bob"]]


def test_a_change_outside_this_project_s_code_notifies_followers(stored):
    """The write bypassed this project's code, so no commit was announced."""

    async def scenario() -> list[str]:
        async with feed.changes("ada") as ada:
            await concurrently.do(retitle("ada"))
            return await following.next_change(ada)

    assert following.run(scenario) == ["ada"]


def test_a_rolled_back_change_is_not_announced(stored):
    def rolled_back() -> None:
        with transaction.atomic():
            following.flip("ada", True)()
            retitle("ada")()
            transaction.set_rollback(True)

    async def scenario() -> list[str]:
        async with feed.all_changes() as all_agents:
            await concurrently.do(rolled_back)
            await concurrently.do(following.flip("bob", False))
            return await following.next_change(all_agents)

    assert following.run(scenario) == ["bob"]


def test_one_notification_covers_all_commits_before_it(stored):
    async def scenario() -> list[Any]:
        async with feed.all_changes() as all_agents, feed.changes("bob") as bob:
            for on in (True, False, True):
                await concurrently.do(following.flip("ada", on))
            await concurrently.do(following.flip("bob", False))
            await following.next_change(bob)
            changes = [await following.next_change(all_agents)]
            await concurrently.do(describe_the_clock)
            return [*changes, await following.next_change(all_agents)]

    assert following.run(scenario) == [["ada", "bob"], ["catalog"]]


def test_a_follower_is_notified_only_of_commits_after_it_started(stored):
    async def scenario() -> list[str]:
        await concurrently.do(following.flip("bob", False))
        async with feed.all_changes() as all_agents:
            await concurrently.do(following.flip("ada", True))
            return await following.next_change(all_agents)

    assert following.run(scenario) == ["ada"]


def test_a_follower_that_started_before_the_watch_gets_an_initial_notification(stored):
    async def scenario() -> feed.Changes:
        return await anext(feed.changes("ada"))

    assert following.run(scenario).catalog


def test_a_follower_has_the_revision_of_its_last_change(stored):
    async def scenario() -> tuple[bool, bool, bool]:
        async with feed.changes("ada") as ada, feed.all_changes() as all_agents:
            own, all_before = ada.revision, all_agents.revision
            await concurrently.do(following.flip("bob", False))
            number = (await anext(all_agents)).revision
            passed = ada.revision == own, number == all_agents.revision == all_before + 1
            await concurrently.do(following.flip("ada", True))
            await following.next_change(ada)
            return *passed, ada.revision == all_agents.revision == all_before + 2

    assert following.run(scenario) == (True, True, True)


def test_creating_deleting_and_renaming_agents_notifies_followers(stored):
    @transaction.atomic
    def gone() -> None:
        for model in (models.ToolkitSwitch, models.AgentToolkit, models.AgentTool):
            model._default_manager.filter(agent__key="bob").delete()
        models.Agent.objects.filter(key="bob").delete()

    async def scenario() -> list[Any]:
        async with feed.changes("ada") as ada, feed.all_changes() as all_agents:
            changes = []
            for act in (
                gone,
                lambda: models.Agent.objects.create(key="carl"),
                lambda: models.Agent.objects.filter(key="carl").update(key="carla"),
            ):
                await concurrently.do(act)
                changes.append(await following.next_change(all_agents))
            # A key is part of the catalog, so only the last of these changes may concern ada.
            return [*changes, await following.next_change(ada)]

    assert following.run(scenario) == [
        ["bob"],
        ["carl"],
        ["carl", "carla", "catalog"],
        ["carl", "carla", "catalog"],
    ]


def test_an_expiring_grant_notifies_followers_without_a_write(stored):
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

    async def scenario() -> list[Any]:
        async with feed.changes("ada") as ada, feed.changes("bob") as bob:
            await concurrently.do(grant)
            changes = await following.next_change(ada)
            while dt.datetime.now(dt.UTC) < soon[0]:
                changes = await following.next_change(ada)
            await concurrently.do(look)
            await concurrently.do(retitle("bob"))
            # If bob's follower were notified of ada, that would come first.
            return [changes, "bob" in await following.next_change(bob)]

    assert following.run(scenario) == [["ada"], True]
    assert numbers[0] == numbers[1]


@pytest.mark.parametrize("model", [models.Plugin, models.Toolkit, models.Tool])
def test_an_ending_block_notifies_all_followers_without_a_write(stored, model):
    soon: list[dt.datetime] = []

    def block() -> None:
        soon.append(dt.datetime.now(dt.UTC) + dt.timedelta(seconds=0.3))
        model.objects.update(blocked=True, block_ends=soon[0])

    def look() -> None:
        assert surfaces.ask("ada").resolution.decision("kb__find").code != "blocked"
        assert model.objects.filter(blocked=True).exists()

    async def scenario() -> list[Any]:
        async with feed.changes("ada") as ada:
            await concurrently.do(block)
            changes = await following.next_change(ada)
            while dt.datetime.now(dt.UTC) < soon[0]:
                changes = await following.next_change(ada)
            await concurrently.do(look)
            return changes

    assert following.run(scenario) == ["catalog"]
