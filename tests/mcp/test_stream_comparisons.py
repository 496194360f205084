"""Tests of how a stream compares what its client has with what it would get, so that no change is missed or made up."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.mcp.conftest import NEW, OLD, Client, run
from tests.mcp.streaming import QUIET, flip, opened
from toolbelt.core import errors
from toolbelt.mcp import protocol, resources, streams


def test_many_streams_that_see_the_same_cost_one_look_a_change(
    client: Client, monkeypatch: pytest.MonkeyPatch
):
    server = client.endpoint.application.mcp
    looks = []
    digest = server.streams._digest

    async def counted(seen: Any) -> streams.Digests:
        looks.append(seen)
        return await digest(seen)

    monkeypatch.setattr(server.streams, "_digest", counted)

    async def main() -> None:
        async with client.endpoint.serving():
            exchanges = [client.endpoint.exchange(client.listening()) for _ in range(50)]
            for exchange in exchanges:
                await opened(exchange, client.version)
            await asyncio.sleep(QUIET)
            looks.clear()
            await flip("reading", True)
            for exchange in exchanges:
                assert (await exchange.message())["method"] == protocol.LIST_CHANGED
                exchange.leave()
                await exchange.task

    run(main)
    # A flip is one commit; what it brings about may be another.
    assert len(looks) <= 2


def test_of_many_flips_none_is_missed_and_none_is_made_up(client: Client):
    """A client that lists at each notification ends with the final list, and gets at most one notification a change."""

    async def main() -> None:
        async with client.endpoint.serving(), client.endpoint.open(client.listening()) as stream:
            await opened(stream, client.version)
            flips, heard = 20, 0
            knows_last = asyncio.Event()

            async def follow() -> None:
                nonlocal heard
                while True:
                    await stream.message()
                    heard += 1
                    answer = await client.endpoint.asend(client.request("tools/list"))
                    names = [tool["name"] for tool in answer.result["tools"]]
                    (knows_last.set if "kb__find" in names else knows_last.clear)()

            follower = asyncio.create_task(follow())
            for number in range(flips):
                await flip("reading", number % 2 == 0)
                if number % 7 == 0:
                    await asyncio.sleep(0.03)
            await flip("reading", True)
            await asyncio.sleep(QUIET)
            knowing = asyncio.create_task(knows_last.wait())
            done, _ = await asyncio.wait({knowing, follower}, timeout=20, return_when=asyncio.FIRST_COMPLETED)
            if follower in done:
                # It only ends by an error.
                await follower
            assert knowing in done
            follower.cancel()
            assert 1 <= heard <= flips + 1

    run(main)


def test_a_list_requested_between_two_flips_that_cancel_out_is_announced(
    client: Client, monkeypatch: pytest.MonkeyPatch
):
    """The stream compares only after the second flip, and finds the list that it knows; its client has another."""
    monkeypatch.setattr(streams, "KEEP_ALIVE", 1000)
    may_compare = asyncio.Event()
    compare = streams.Streams._compare_until_read

    async def compare_later(server: streams.Streams, agent: str) -> None:
        await may_compare.wait()
        await compare(server, agent)

    monkeypatch.setattr(streams.Streams, "_compare_until_read", compare_later)

    async def main() -> None:
        async with client.endpoint.serving(), client.endpoint.open(client.listening()) as stream:
            await opened(stream, client.version)
            await flip("reading", True)
            answer = await client.endpoint.asend(client.request("tools/list"))
            assert "kb__find" in [tool["name"] for tool in answer.result["tools"]]
            await flip("reading", False)
            may_compare.set()
            assert (await stream.message())["method"] == protocol.LIST_CHANGED

    run(main)


@pytest.mark.parametrize(
    ("method", "field", "expected"),
    [
        ("prompts/list", "prompts", protocol.PROMPTS_CHANGED),
        ("resources/list", "resources", protocol.RESOURCES_CHANGED),
        ("resources/templates/list", "resources", protocol.RESOURCES_CHANGED),
        ("resources/read", "policy", protocol.RESOURCE_UPDATED),
    ],
)
def test_what_a_client_is_sent_is_compared_with_what_its_stream_knows(
    old: Client, monkeypatch: pytest.MonkeyPatch, method: str, field: str, expected: str
):
    monkeypatch.setattr(streams, "KEEP_ALIVE", 1000)

    async def main() -> None:
        async with old.endpoint.serving(), old.endpoint.open(old.listening()) as stream:
            await opened(stream, OLD)
            await asyncio.sleep(QUIET)
            (watched,) = old.endpoint.application.mcp.streams._by_agent["ada"]
            watched.wants_policy = True
            watched.known = watched.known._replace(**{field: "another"})
            params = {"uri": resources.POLICY} if method == "resources/read" else None
            assert (await old.endpoint.asend(old.request(method, params))).status == 200
            assert (await stream.message())["method"] == expected

    run(main)


def test_a_slow_comparison_of_lists_does_not_undo_a_later_one(monkeypatch: pytest.MonkeyPatch):
    async def follow_nothing(server: streams.Streams, agent: str) -> None:
        pass

    monkeypatch.setattr(streams.Streams, "_watch", follow_nothing)

    async def main() -> streams.Digests:
        current, slow = "off", asyncio.Event()

        async def digest(seen: Any) -> streams.Digests:
            read = streams.Digests(tools=current)
            if read.tools == "off":
                await slow.wait()
            return read

        async def none(keys: Any) -> Any:
            return {}

        server = streams.Streams(digest, none, none)
        stream = streams.Stream(
            seen=streams.StreamState("token", "ada", None, False), known=streams.Digests(tools="on")
        )
        server.open(stream)
        first = asyncio.create_task(server.compare_lists("ada"))
        await asyncio.sleep(0)
        current = "on"
        second = asyncio.create_task(server.compare_lists("ada"))
        await asyncio.sleep(0)
        slow.set()
        await asyncio.gather(first, second)
        server.close(stream)
        return stream.known

    assert run(main).tools == "on"


def test_a_stream_misses_no_change_while_it_is_being_opened(client: Client, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(streams, "KEEP_ALIVE", 1000)
    shared = client.endpoint.application.mcp._shared
    find = shared.current_list

    async def main() -> None:
        async with client.endpoint.serving(), client.endpoint.open(client.listening()) as earlier:
            await opened(earlier, client.version)

            async def current_list(head: Any, **about: Any) -> Any:
                before = await find(head, **about)
                await flip("reading", True)
                await earlier.message()
                return before

            monkeypatch.setattr(shared, "current_list", current_list)
            async with client.endpoint.open(client.listening()) as late:
                await opened(late, client.version)
                assert (await late.message())["method"] == protocol.LIST_CHANGED

    run(main)


@pytest.mark.parametrize("is_stale", [False, True])
def test_a_change_is_announced_even_if_the_lists_cannot_be_read_at_first(
    client: Client, monkeypatch: pytest.MonkeyPatch, is_stale: bool
):
    monkeypatch.setattr(streams, "KEEP_ALIVE", 1000)
    monkeypatch.setattr(streams, "RETRY", 0.01)
    shared = client.endpoint.application.mcp._shared
    find = shared._current_list
    failures = 0

    async def main() -> None:
        nonlocal failures
        async with client.endpoint.serving(), client.endpoint.open(client.listening()) as stream:
            await opened(stream, client.version)
            # The first commit is read before any failure.
            await flip("reading", True)
            assert (await stream.message())["method"] == protocol.LIST_CHANGED
            last = await find(streams.StreamState(client.token, "ada", None, client.version != NEW))

            async def current_list(seen: Any) -> Any:
                nonlocal failures
                failures += 1
                if failures > 1:
                    return await find(seen)
                if is_stale:
                    return last._replace(is_stale=True)
                raise errors.Unavailable("database-unavailable", "It is away.", 1)

            monkeypatch.setattr(shared, "_current_list", current_list)
            await flip("reading", False)
            assert (await stream.message())["method"] == protocol.LIST_CHANGED

    run(main)
    assert failures > 1
