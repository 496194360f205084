"""Tests that a call is cancelled by the client that made it, and by no other."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime as dt
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.api.conftest import SETUP
from tests.mcp.conftest import ADDRESS, Client, Endpoint, Request, run
from tests.mcp.slow_tools import calling, progressing
from toolbelt import models
from toolbelt.control.people import tokens
from toolbelt.mcp import list_changes, protocol, running_calls
from toolbelt.runtime import prepared_answers
from toolbelt.store import cancellations, clock


@pytest.mark.parametrize(
    ("id_", "is_meant"), [(1, True), ("1", False), (2, False), (True, False), (None, False)]
)
def test_the_first_era_takes_back_the_call_that_it_names(
    old: Client, monkeypatch: pytest.MonkeyPatch, id_: Any, is_meant: bool
):
    async def main() -> tuple[bool, Any]:
        tool = progressing(monkeypatch)
        exchange = old.endpoint.exchange(calling(old))
        await tool.begun.wait()
        taken = await old.endpoint.asend(
            old.request("notifications/cancelled", {"requestId": id_, "reason": "enough"}, id_=None)
        )
        assert taken.status == 202
        if not is_meant:
            tool.go_on.set()
        while "id" not in (message := await exchange.message()):
            pass
        return tool.was_cancelled, message

    was_cancelled, message = run(main)
    assert was_cancelled is is_meant
    assert ("error" in message) is is_meant
    if is_meant:
        assert message["error"]["code"] == protocol.CANCELLED


def test_nobody_takes_back_another_s_call(old: Client, monkeypatch: pytest.MonkeyPatch):
    other = dataclasses.replace(old, token=tokens.issue(SETUP, agent="ada").text)

    async def main() -> bool:
        tool = progressing(monkeypatch)
        exchange = old.endpoint.exchange(calling(old))
        await tool.begun.wait()
        await other.endpoint.asend(other.request("notifications/cancelled", {"requestId": 1}, id_=None))
        tool.go_on.set()
        await exchange.rest()
        return tool.was_cancelled

    assert not run(main)


def test_two_clients_that_look_alike_take_back_neither_s_call(old: Client, monkeypatch: pytest.MonkeyPatch):
    async def main() -> bool:
        tool = progressing(monkeypatch)
        first, second = (old.endpoint.exchange(calling(old)) for _ in range(2))
        await tool.begun_twice.wait()
        await old.endpoint.asend(took_back(old))
        tool.go_on.set()
        await asyncio.gather(first.rest(), second.rest())
        return tool.was_cancelled

    assert not run(main)


# In another process


def took_back(client: Client, id_: Any = 1) -> Request:
    return client.request("notifications/cancelled", {"requestId": id_}, id_=None)


@pytest.fixture
def known(old: Client, monkeypatch: pytest.MonkeyPatch) -> Client:
    """Return a client that sends the id of its session, to a server that does not wait long."""
    monkeypatch.setattr(running_calls, "SECONDS", 0.01)
    return dataclasses.replace(old, session=list_changes.new_session(""))


@pytest.fixture
def elsewhere(known: Client) -> Client:
    """Return the same client as another process of the server sees it."""
    return dataclasses.replace(known, endpoint=Endpoint(prepared_answers.answers()))


def test_a_call_is_taken_back_where_another_process_is_told(
    known: Client, elsewhere: Client, monkeypatch: pytest.MonkeyPatch
):
    async def main() -> Any:
        tool = progressing(monkeypatch)
        exchange = known.endpoint.exchange(calling(known))
        await tool.begun.wait()
        assert (await elsewhere.endpoint.asend(took_back(elsewhere))).status == 202
        while "id" not in (message := await exchange.message()):
            pass
        return message["error"]["code"]

    assert run(main) == protocol.CANCELLED


@pytest.mark.parametrize("another", [{"session": list_changes.new_session("")}, {"path": f"{ADDRESS}/s/s1"}])
def test_another_process_takes_back_that_client_s_call_alone(
    known: Client, elsewhere: Client, another: Any, monkeypatch: pytest.MonkeyPatch
):
    async def main() -> bool:
        tool, read = progressing(monkeypatch), watched(monkeypatch)
        exchange = known.endpoint.exchange(calling(known))
        await tool.begun.wait()
        await elsewhere.endpoint.asend(took_back(dataclasses.replace(elsewhere, **another)))
        await elsewhere.endpoint.asend(took_back(elsewhere, "1"))
        await read()
        tool.go_on.set()
        await exchange.rest()
        return tool.was_cancelled

    assert not run(main)


def test_what_was_taken_back_before_a_call_began_was_meant_for_another(
    known: Client, elsewhere: Client, monkeypatch: pytest.MonkeyPatch
):
    async def main() -> bool:
        tool, read = progressing(monkeypatch), watched(monkeypatch)
        await elsewhere.endpoint.asend(took_back(elsewhere))
        exchange = known.endpoint.exchange(calling(known))
        await tool.begun.wait()
        await read()
        tool.go_on.set()
        await exchange.rest()
        return tool.was_cancelled

    assert not run(main)


def watched(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Awaitable[None]]:
    """Return a function that waits until this was read in what other processes were sent, from the beginning."""
    asked, loop = cancellations.requested, asyncio.get_running_loop()
    turns: asyncio.Queue[None] = asyncio.Queue()

    def noted(keys: Any) -> Any:
        found = asked(keys)
        loop.call_soon_threadsafe(turns.put_nowait, None)
        return found

    monkeypatch.setattr(cancellations, "requested", noted)

    async def read() -> None:
        while not turns.empty():
            turns.get_nowait()
        # One may be under way that began before.
        async with asyncio.timeout(20):
            await turns.get()
            await turns.get()

    return read


def test_who_sends_no_session_s_id_is_taken_for_nobody_in_another_process(old: Client):
    old.endpoint.send(took_back(old))
    assert not models.Cancellation.objects.exists()


def test_what_was_taken_back_is_forgotten_after_a_while(known: Client):
    long_ago = clock.now() - cancellations.KEPT - dt.timedelta(seconds=1)
    models.Cancellation.objects.create(key="long ago", at=long_ago)
    known.endpoint.send(took_back(known, 1), took_back(known, 2), took_back(known, 2))
    assert models.Cancellation.objects.count() == 2
    assert not models.Cancellation.objects.filter(key="long ago").exists()
