"""Tests that a client cannot harm others by what it sends, opens or does not read, or by posing as another client."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection

from tests.api.conftest import SETUP
from tests.mcp.conftest import NEW, OLD, Client, Endpoint, Exchange, Request, run
from tests.mcp.streaming import flip, read_opening
from toolbelt.control.people import tokens
from toolbelt.mcp import exchanges, protocol, request_head, streams


class StalledClient(Exchange):
    """A client that reads only the opening of its stream, so that its server has to wait."""

    def __init__(self, application: Any, request: Request, reads: int) -> None:
        self._reads = reads
        self.is_blocking = asyncio.Event()
        super().__init__(application, request)

    async def _send(self, message: Any) -> None:
        if not self._reads:
            self.is_blocking.set()
            await asyncio.Event().wait()
        self._reads -= 1
        await super()._send(message)


def test_a_client_that_does_not_read_delays_no_others_and_is_disconnected(
    client: Client, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(exchanges, "WRITE_TIMEOUT", 0.3)

    async def main() -> None:
        endpoint = client.endpoint
        async with endpoint.serving(), endpoint.open(client.listening()) as reader:
            await read_opening(reader, client.version)
            unread = StalledClient(endpoint.application, client.listening(), reads=2)
            await read_opening(unread, client.version)
            for on in (True, False, True):
                await flip("reading", on)
                assert (await reader.message())["method"] == protocol.LIST_CHANGED
            assert unread.is_blocking.is_set()
            await asyncio.wait_for(unread.task, 20)
            assert len(endpoint.application.mcp.streams) == 1

    run(main)


@pytest.mark.parametrize(
    ("limit", "is_another", "who"),
    [
        ("MAX_PER_TOKEN", False, "This token"),
        ("MAX_PER_AGENT", True, "The agent ada"),
        ("MAX_COUNT", True, "This server"),
    ],
)
def test_the_error_for_too_many_streams_names_the_exhausted_limit(
    client: Client, monkeypatch: pytest.MonkeyPatch, limit: str, is_another: bool, who: str
):
    monkeypatch.setattr(streams, limit, 2)
    another = client
    if is_another:
        another = dataclasses.replace(client, token=tokens.issue(SETUP, agent="ada").text)

    async def main() -> tuple[Any, int]:
        endpoint = client.endpoint
        async with endpoint.serving(), endpoint.open(client.listening()) as first:
            await read_opening(first, client.version)
            async with endpoint.open(client.listening()) as second:
                await read_opening(second, client.version)
                refused = await endpoint.asend(another.listening())
            # There is room again.
            async with endpoint.open(another.listening()) as third:
                return refused, (await third.started())[0]

    refused, then = run(main)
    assert (refused.status, refused.headers["retry-after"], then) == (429, "15", 200)
    assert refused.error["message"].startswith(f"{who} has 2 streams open")


def test_an_operator_token_s_streams_are_counted_across_agents(
    endpoint: Endpoint, reader: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(streams, "MAX_PER_TOKEN", 1)
    of_ada, of_bob = (Client(endpoint=endpoint, token=reader, path=f"/mcp/{name}") for name in ("ada", "bob"))

    async def main() -> tuple[int, int]:
        async with endpoint.serving():
            async with endpoint.open(of_ada.listening()) as first:
                await read_opening(first, of_ada.version)
                refused = await endpoint.asend(of_bob.listening())
            async with endpoint.open(of_bob.listening()) as second:
                return refused.status, (await second.started())[0]

    assert run(main) == (429, 200)


def test_too_large_a_request_head_is_refused(client: Client):
    answer = client.ask("tools/list", x_more="x" * request_head.MAX_BYTES)
    assert answer.status == 431


def test_large_request_heads_are_not_cached(client: Client):
    cached = client.endpoint.application.mcp._shared.heads._heads
    assert client.ask("tools/list", x_more="x" * request_head.MAX_CACHED_BYTES).status == 200
    assert not cached
    assert client.ask("tools/list").status == 200
    assert len(cached) == 1


def test_too_long_a_session_id_is_refused(old: Client):
    answer = old.ask("ping", mcp_session_id="x" * (request_head.MAX_SESSION_LENGTH + 1))
    assert (answer.status, "Mcp-Session-Id" in answer.error["message"]) == (400, True)


@pytest.mark.parametrize("id_", [1.5, 1.0, True, [1], {"a": 1}, "x" * 1001, 2**60])
def test_a_request_id_must_be_a_string_or_an_integer(client: Client, id_: Any):
    answer = client.ask("tools/list", id_=id_)
    assert answer.status_and_code == (400, protocol.INVALID_REQUEST)
    assert answer.json()["id"] is None


def test_a_null_request_id_is_refused(client: Client):
    request = client.request("tools/list", id_=7)
    answer = client.endpoint.send(dataclasses.replace(request, body={**request.body, "id": None}))
    assert answer.status_and_code == (400, protocol.INVALID_REQUEST)


def test_two_requests_with_the_same_id_are_both_answered(client: Client):
    async def main() -> list[Any]:
        async with client.endpoint.serving():
            return await asyncio.gather(
                *(client.endpoint.asend(client.request("tools/list", id_="twice")) for _ in range(2))
            )

    assert [answer.json()["id"] for answer in run(main)] == ["twice", "twice"]


def test_two_clients_with_the_same_session_id_are_both_notified(old: Client):
    first_client, second_client = (
        dataclasses.replace(old, session="same", client=("192.0.2.7", port)) for port in (1, 2)
    )

    async def main() -> None:
        endpoint = old.endpoint
        async with (
            endpoint.serving(),
            endpoint.open(first_client.stream()) as first,
            endpoint.open(second_client.stream()) as second,
        ):
            for stream in (first, second):
                await read_opening(stream, OLD)
            await flip("reading", True)
            for stream in (first, second):
                assert (await stream.message())["method"] == protocol.LIST_CHANGED

    run(main)


def test_ending_a_session_keeps_the_streams_of_other_tokens(old: Client):
    mine = dataclasses.replace(old, session="same")
    stranger = tokens.issue(SETUP, agent="ada").text

    async def main() -> None:
        endpoint = old.endpoint
        async with endpoint.serving(), endpoint.open(mine.stream()) as stream:
            await read_opening(stream, OLD)
            gone = Request(method="DELETE", token=stranger, headers={"mcp-session-id": "same"})
            assert (await endpoint.asend(gone)).status == 405
            await flip("reading", True)
            assert (await stream.message())["method"] == protocol.LIST_CHANGED

    run(main)


@pytest.mark.parametrize("last", ["", "x", "tb.", "tb.abc.def", "tb." + "é" * 32 + ".x", "9" * 3000])
def test_an_invalid_last_event_id_starts_the_stream_from_the_beginning(old: Client, last: str):
    async def main() -> int:
        async with old.endpoint.serving(), old.endpoint.open(old.stream(last_event_id=last)) as stream:
            status, _ = await stream.started()
            await stream.event()
            return status

    assert run(main) == 200


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "PUT", "TRACE"])
@pytest.mark.parametrize("version", [OLD, NEW])
def test_other_methods_are_refused_with_the_allowed_methods(old: Client, method: str, version: str):
    request = Request(method=method, token=old.token, headers={"mcp-protocol-version": version})
    answer = old.endpoint.send(request)
    assert (answer.status, answer.headers["allow"]) == (405, "GET, POST")


def test_a_cors_preflight_request_is_refused(old: Client):
    asking = {"origin": "https://evil.example", "access-control-request-method": "POST"}
    answer = old.endpoint.send(Request(method="OPTIONS", headers=asking))
    assert answer.status == 403
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="about PostgreSQL, whose connections are few")
def test_closed_streams_leave_no_database_connections(client: Client):
    def count() -> int:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
            return int(cursor.fetchone()[0])

    async def main() -> tuple[int, int]:
        endpoint = client.endpoint
        async with endpoint.serving():
            counts = []
            for turn in range(200):
                async with endpoint.open(client.listening()) as stream:
                    await stream.started()
                    if turn % 2:
                        await stream.event()
                if turn in (9, 199):
                    counts.append(await sync_to_async(count)())
            return counts[0], counts[1]

    before, after = run(main)
    assert after <= before
    # One connection that reads, one that listens, and the test's own.
    assert after <= 3
