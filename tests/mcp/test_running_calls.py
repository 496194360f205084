"""Tests that only the client that made a call can cancel it."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime as dt
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.api.conftest import SETUP
from tests.mcp.conftest import ADDRESS, Client, Endpoint, Request, run
from tests.mcp.slow_tools import call_request, slow_tool
from toolbelt import models
from toolbelt.control.people import tokens
from toolbelt.mcp import list_changes, protocol, running_calls
from toolbelt.runtime.surfaces import prepared_answers
from toolbelt.store import cancellations, clock


@pytest.mark.parametrize(
    ("id_", "is_meant"), [(1, True), ("1", False), (2, False), (True, False), (None, False)]
)
def test_a_first_era_cancellation_applies_only_to_the_named_request(
    old: Client, monkeypatch: pytest.MonkeyPatch, id_: Any, is_meant: bool
):
    async def main() -> tuple[bool, Any]:
        tool = slow_tool(monkeypatch)
        exchange = old.endpoint.exchange(call_request(old))
        await tool.started.wait()
        answer = await old.endpoint.asend(
            old.request("notifications/cancelled", {"requestId": id_, "reason": "enough"}, id_=None)
        )
        assert answer.status == 202
        if not is_meant:
            tool.released.set()
        while "id" not in (message := await exchange.message()):
            pass
        return tool.was_cancelled, message

    was_cancelled, message = run(main)
    assert was_cancelled is is_meant
    assert ("error" in message) is is_meant
    if is_meant:
        assert message["error"]["code"] == protocol.CANCELLED


def test_a_client_cannot_cancel_another_token_s_call(old: Client, monkeypatch: pytest.MonkeyPatch):
    other = dataclasses.replace(old, token=tokens.issue(SETUP, agent="ada").text)

    async def main() -> bool:
        tool = slow_tool(monkeypatch)
        exchange = old.endpoint.exchange(call_request(old))
        await tool.started.wait()
        await other.endpoint.asend(other.request("notifications/cancelled", {"requestId": 1}, id_=None))
        tool.released.set()
        await exchange.rest()
        return tool.was_cancelled

    assert not run(main)


def test_an_ambiguous_cancellation_cancels_no_call(old: Client, monkeypatch: pytest.MonkeyPatch):
    async def main() -> bool:
        tool = slow_tool(monkeypatch)
        first, second = (old.endpoint.exchange(call_request(old)) for _ in range(2))
        await tool.started_twice.wait()
        await old.endpoint.asend(cancellation(old))
        tool.released.set()
        await asyncio.gather(first.rest(), second.rest())
        return tool.was_cancelled

    assert not run(main)


# In another process


def cancellation(client: Client, id_: Any = 1) -> Request:
    return client.request("notifications/cancelled", {"requestId": id_}, id_=None)


@pytest.fixture
def session_client(old: Client, monkeypatch: pytest.MonkeyPatch) -> Client:
    """Return a client with a session id, at a server that checks for cancellations often."""
    monkeypatch.setattr(running_calls, "POLL_SECONDS", 0.01)
    return dataclasses.replace(old, session=list_changes.new_session(""))


@pytest.fixture
def elsewhere(session_client: Client) -> Client:
    """Return the same client, connected to another process of the server."""
    return dataclasses.replace(session_client, endpoint=Endpoint(prepared_answers.answers()))


def test_a_cancellation_sent_to_another_process_cancels_the_call(
    session_client: Client, elsewhere: Client, monkeypatch: pytest.MonkeyPatch
):
    async def main() -> Any:
        tool = slow_tool(monkeypatch)
        exchange = session_client.endpoint.exchange(call_request(session_client))
        await tool.started.wait()
        assert (await elsewhere.endpoint.asend(cancellation(elsewhere))).status == 202
        while "id" not in (message := await exchange.message()):
            pass
        return message["error"]["code"]

    assert run(main) == protocol.CANCELLED


@pytest.mark.parametrize("another", [{"session": list_changes.new_session("")}, {"path": f"{ADDRESS}/s/s1"}])
def test_a_cancellation_of_another_session_does_not_cancel_the_call(
    session_client: Client, elsewhere: Client, another: Any, monkeypatch: pytest.MonkeyPatch
):
    async def main() -> bool:
        tool, read = slow_tool(monkeypatch), watch_reads(monkeypatch)
        exchange = session_client.endpoint.exchange(call_request(session_client))
        await tool.started.wait()
        await elsewhere.endpoint.asend(cancellation(dataclasses.replace(elsewhere, **another)))
        await elsewhere.endpoint.asend(cancellation(elsewhere, "1"))
        await read()
        tool.released.set()
        await exchange.rest()
        return tool.was_cancelled

    assert not run(main)


def test_a_cancellation_sent_before_a_call_started_is_ignored(
    session_client: Client, elsewhere: Client, monkeypatch: pytest.MonkeyPatch
):
    async def main() -> bool:
        tool, read = slow_tool(monkeypatch), watch_reads(monkeypatch)
        await elsewhere.endpoint.asend(cancellation(elsewhere))
        exchange = session_client.endpoint.exchange(call_request(session_client))
        await tool.started.wait()
        await read()
        tool.released.set()
        await exchange.rest()
        return tool.was_cancelled

    assert not run(main)


def watch_reads(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Awaitable[None]]:
    """Return a function that waits for a complete read of the cancellations of other processes."""
    requested, loop = cancellations.requested, asyncio.get_running_loop()
    turns: asyncio.Queue[None] = asyncio.Queue()

    def record(keys: Any) -> Any:
        cancelled = requested(keys)
        loop.call_soon_threadsafe(turns.put_nowait, None)
        return cancelled

    monkeypatch.setattr(cancellations, "requested", record)

    async def read() -> None:
        while not turns.empty():
            turns.get_nowait()
        # The first read may have started before.
        async with asyncio.timeout(20):
            await turns.get()
            await turns.get()

    return read


def test_a_cancellation_without_a_session_id_is_not_stored(old: Client):
    old.endpoint.send(cancellation(old))
    assert not models.Cancellation.objects.exists()


def test_old_cancellations_are_deleted(session_client: Client):
    long_ago = clock.now() - cancellations.MAX_AGE - dt.timedelta(seconds=1)
    models.Cancellation.objects.create(key="long ago", at=long_ago)
    session_client.endpoint.send(
        cancellation(session_client, 1), cancellation(session_client, 2), cancellation(session_client, 2)
    )
    assert models.Cancellation.objects.count() == 2
    assert not models.Cancellation.objects.filter(key="long ago").exists()
