"""Answers that are small on the wire and unpack to any size, from a real server over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from tests.plugins.upstream import packing
from toolbelt.core import connections
from toolbelt.plugins.upstream import connection, live_connection, transports
from toolbelt.plugins.upstream import limits as bounds

pytestmark = pytest.mark.slow

T = TypeVar("T")
UNPACKED = 2 * transports.MAX_BYTES
NOT_READ = "although it was asked not to, so it was not read."


def using(server: packing.Server, story: Callable[[connection.Server], Awaitable[T]]) -> T:
    reached = connections.of({"url": server.url, "timeout": 20})
    assert reached is not None

    async def whole() -> T:
        client = connection.Server(reached, environ={}, bounds=bounds.Limits(first_pause=60.0))
        try:
            async with asyncio.timeout(60):
                return await story(client)
        finally:
            await client.close()

    return asyncio.run(whole())


@pytest.mark.parametrize("method", ["initialize", "tools/list"])
@pytest.mark.parametrize("as_events", [False, True], ids=["JSON", "events"])
@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_a_packed_answer_is_not_unpacked_before_anything_was_approved(
    method: str, as_events: bool, coding: str
) -> None:
    with packing.served(method, coding, as_events=as_events, padding=UNPACKED) as server:
        answer = using(server, lambda client: client.ask())

    assert f"({coding}) {NOT_READ}" in answer.error
    assert answer.tools == ()


def test_a_packed_answer_to_a_call_is_not_unpacked() -> None:
    async def story(client: connection.Server) -> Any:
        assert [tool["name"] for tool in (await client.tools()).tools] == ["echo"]
        return await client.call("echo", {})

    with (
        packing.served("tools/call", padding=UNPACKED) as server,
        pytest.raises(live_connection.UnreachableError, match=NOT_READ),
    ):
        using(server, story)


@pytest.mark.parametrize("as_events", [False, True], ids=["JSON", "events"])
def test_servers_are_asked_for_plain_answers_and_those_are_read(as_events: bool) -> None:
    with packing.served(as_events=as_events) as server:
        result = using(server, lambda client: client.call("echo", {}))

    assert result["content"][0]["text"] == "echoed"
    assert server.accepted == {"identity"}
