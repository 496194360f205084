"""Tests that compressed responses, which are small on the wire and expand to any size, are not decompressed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from tests.plugins.upstream import compressed_server, harness
from toolbelt.core import connections
from toolbelt.plugins.upstream import bodies, connection, live_connection
from toolbelt.plugins.upstream import limits as bounds

pytestmark = pytest.mark.slow

T = TypeVar("T")
EXPANDED_BYTES = 2 * bodies.MAX_BYTES
NOT_READ = "although Toolbelt requested none, so it was not read."


def run_connected(server: compressed_server.Server, story: Callable[[connection.Server], Awaitable[T]]) -> T:
    settings = connections.of({"url": server.url, "timeout": 20})
    assert settings is not None
    client = connection.Server(settings, environ={}, bounds=bounds.Limits(first_pause=60.0))
    return harness.run(client, story)


@pytest.mark.parametrize("method", ["initialize", "tools/list"])
@pytest.mark.parametrize("as_events", [False, True], ids=["JSON", "events"])
@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_a_compressed_response_to_a_listing_is_not_decompressed(
    method: str, as_events: bool, coding: str
) -> None:
    with compressed_server.running(method, coding, as_events=as_events, padding=EXPANDED_BYTES) as server:
        answer = run_connected(server, lambda client: client.ask())

    assert f"({coding}) {NOT_READ}" in answer.error
    assert answer.tools == ()


def test_a_compressed_response_to_a_call_is_not_decompressed() -> None:
    async def story(client: connection.Server) -> Any:
        assert [tool["name"] for tool in (await client.tools()).tools] == ["echo"]
        return await harness.call(client, "echo", {})

    with (
        compressed_server.running("tools/call", padding=EXPANDED_BYTES) as server,
        pytest.raises(live_connection.UnreachableError, match=NOT_READ),
    ):
        run_connected(server, story)


@pytest.mark.parametrize("as_events", [False, True], ids=["JSON", "events"])
def test_uncompressed_responses_are_requested_and_read(as_events: bool) -> None:
    with compressed_server.running(as_events=as_events) as server:
        result = run_connected(server, lambda client: harness.call(client, "echo", {}))

    assert result["content"][0]["text"] == "echoed"
    assert server.accepted == {"identity"}
