"""Tests that a stream compares its client's lists with the current ones, and misses or invents no change."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.mcp.conftest import NEW, OLD, Client, run
from tests.mcp.streaming import QUIET, flip, read_opening
from toolbelt.core import errors
from toolbelt.core.request_key import RequestKey
from toolbelt.mcp import exchanges, protocol, resources, streams


def test_equal_streams_share_one_read_per_change(client: Client, monkeypatch: pytest.MonkeyPatch):
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
                await read_opening(exchange, client.version)
            await asyncio.sleep(QUIET)
            looks.clear()
            await flip("reading", True)
            for exchange in exchanges:
                assert (await exchange.message())["method"] == protocol.LIST_CHANGED
                exchange.disconnect()
                await exchange.task

    run(main)
    # A switch change is one commit; its consequences may be another.
    assert len(looks) <= 2


def test_many_switch_changes_are_all_announced_and_none_is_invented(client: Client):
    """A client that lists on each notification ends with the final list, with at most one notification per change."""

    async def main() -> None:
        async with client.endpoint.serving(), client.endpoint.open(client.listening()) as stream:
            await read_opening(stream, client.version)
            flips, received = 20, 0
            has_last_list = asyncio.Event()

            async def follow() -> None:
                nonlocal received
                while True:
                    await stream.message()
                    received += 1
                    answer = await client.endpoint.asend(client.request("tools/list"))
                    names = [tool["name"] for tool in answer.result["tools"]]
                    (has_last_list.set if "kb__find" in names else has_last_list.clear)()

            follower = asyncio.create_task(follow())
            for number in range(flips):
                await flip("reading", number % 2 == 0)
                if number % 7 == 0:
                    await asyncio.sleep(0.03)
            await flip("reading", True)
            await asyncio.sleep(QUIET)
            last_list_seen = asyncio.create_task(has_last_list.wait())
            done, _ = await asyncio.wait(
                {last_list_seen, follower}, timeout=20, return_when=asyncio.FIRST_COMPLETED
            )
            if follower in done:
                # It ends only with an error.
                await follower
            assert last_list_seen in done
            follower.cancel()
            assert 1 <= received <= flips + 1

    run(main)


def test_a_list_requested_between_two_opposite_changes_is_announced(
    client: Client, monkeypatch: pytest.MonkeyPatch
):
    """The stream compares only after the second change and finds the list it knows, but its client has another."""
    monkeypatch.setattr(streams, "KEEP_ALIVE", 1000)
    may_compare = asyncio.Event()
    compare = streams.Streams._compare_until_read

    async def compare_later(server: streams.Streams, agent: str) -> None:
        await may_compare.wait()
        await compare(server, agent)

    monkeypatch.setattr(streams.Streams, "_compare_until_read", compare_later)

    async def main() -> None:
        async with client.endpoint.serving(), client.endpoint.open(client.listening()) as stream:
            await read_opening(stream, client.version)
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
def test_a_list_sent_to_a_client_is_compared_with_its_stream_s(
    old: Client, monkeypatch: pytest.MonkeyPatch, method: str, field: str, expected: str
):
    monkeypatch.setattr(streams, "KEEP_ALIVE", 1000)

    async def main() -> None:
        async with old.endpoint.serving(), old.endpoint.open(old.listening()) as stream:
            await read_opening(stream, OLD)
            await asyncio.sleep(QUIET)
            (watched,) = old.endpoint.application.mcp.streams._by_agent["ada"]
            watched.wants_policy = True
            watched.known_digests = watched.known_digests._replace(**{field: "another"})
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
            state=streams.StreamState("token", RequestKey("ada"), False),
            known_digests=streams.Digests(tools="on"),
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
        return stream.known_digests

    assert run(main).tools == "on"


def test_a_change_while_a_stream_opens_is_announced(client: Client, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(streams, "KEEP_ALIVE", 1000)
    find = exchanges.Exchange.current_list

    async def main() -> None:
        async with client.endpoint.serving(), client.endpoint.open(client.listening()) as earlier:
            await read_opening(earlier, client.version)

            async def current_list(exchange: Any, head: Any, **about: Any) -> Any:
                before = await find(exchange, head, **about)
                await flip("reading", True)
                await earlier.message()
                return before

            monkeypatch.setattr(exchanges.Exchange, "current_list", current_list)
            async with client.endpoint.open(client.listening()) as late:
                await read_opening(late, client.version)
                assert (await late.message())["method"] == protocol.LIST_CHANGED

    run(main)


@pytest.mark.parametrize("is_stale", [False, True])
def test_a_change_is_announced_even_if_reading_the_lists_fails_at_first(
    client: Client, monkeypatch: pytest.MonkeyPatch, is_stale: bool
):
    monkeypatch.setattr(streams, "KEEP_ALIVE", 1000)
    monkeypatch.setattr(streams, "RETRY_SECONDS", 0.01)
    shared = client.endpoint.application.mcp._shared
    find = shared.current_list
    failures = 0

    async def main() -> None:
        nonlocal failures
        async with client.endpoint.serving(), client.endpoint.open(client.listening()) as stream:
            await read_opening(stream, client.version)
            # The first commit is read before any failure.
            await flip("reading", True)
            assert (await stream.message())["method"] == protocol.LIST_CHANGED
            last = await find(streams.StreamState(client.token, RequestKey("ada"), client.version != NEW))

            async def current_list(seen: Any) -> Any:
                nonlocal failures
                failures += 1
                if failures > 1:
                    return await find(seen)
                if is_stale:
                    return last._replace(is_stale=True)
                raise errors.Unavailable("database-unavailable", "It is away.", 1)

            monkeypatch.setattr(shared, "current_list", current_list)
            await flip("reading", False)
            assert (await stream.message())["method"] == protocol.LIST_CHANGED

    run(main)
    assert failures > 1
