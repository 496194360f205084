"""Tests of servers over HTTP+SSE, the transport of MCP 2024-11-05."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import pytest

from tests.plugins.upstream import harness, sse_server
from toolbelt.core import connections
from toolbelt.plugins import contract
from toolbelt.plugins.upstream import connection, eras, limits, live_connection, results

pytestmark = pytest.mark.slow

T = TypeVar("T")
# Much longer than any answer here, and shorter than a call may wait.
SOON = 5.0


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    eras._remembered.clear()


@pytest.fixture
def old() -> Iterator[sse_server.Server]:
    with sse_server.running() as server:
        yield server


def run(url: str, story: Callable[[connection.Server], Awaitable[T]], **fields: Any) -> T:
    settings = connections.of({"url": url, "timeout": 20, **fields})
    assert settings is not None
    bounds = dataclasses.replace(limits.Limits(), first_pause=0.01, probe=0.5)
    return harness.run(connection.Server(settings, environ={}, bounds=bounds), story)


async def echo(server: connection.Server) -> Any:
    return await harness.call(server, "echo", {})


def methods(server: sse_server.Server) -> list[str]:
    return [method for method, _ in server.requests]


def refuse_calls(status: int, body: bytes = b"") -> Callable[[dict[str, Any]], tuple[int, bytes] | None]:
    return lambda message: (status, body) if message.get("method") == "tools/call" else None


def test_a_real_server_is_listed_called_and_followed() -> None:
    async def story(server: connection.Server) -> None:
        listed = await server.tools()
        assert [tool["name"] for tool in listed.tools] == ["add", "steps", "grow"]
        sums = await asyncio.gather(*(harness.call(server, "add", {"one": n, "other": 1}) for n in range(20)))
        assert [harness.text(result) for result in sums] == [str(n + 1) for n in range(20)]
        steps: list[float] = []

        async def progress(done: float, total: float | None, message: str | None) -> None:
            steps.append(done)

        await harness.call(server, "steps", {}, progress=progress)
        assert steps == [1]
        await harness.call(server, "grow", {})
        while len(server.listed.tools) == 3:  # type: ignore[union-attr]  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    with sse_server.official() as url:
        run(url, story)


def test_the_transport_is_found_once_and_again_after_a_refresh(old: sse_server.Server) -> None:
    async def ask(server: connection.Server) -> str:
        return (await server.ask()).error

    run(old.url, echo)
    assert [path for method, path in old.requests[:3] if method == "POST"] == ["/old", "/old"]
    assert old.requests[2] == ("GET", "/old")
    found = len(old.requests)
    run(old.url, echo)
    assert ("POST", "/old") not in old.requests[found:]
    found = len(old.requests)
    assert run(old.url, ask) == ""
    assert ("POST", "/old") in old.requests[found:]


def test_a_server_that_learned_the_newer_transport_is_probed_again(old: sse_server.Server) -> None:
    run(old.url, echo)
    old.get = 405, "text/plain", b""
    with pytest.raises(live_connection.UnreachableError):
        run(old.url, echo)
    found = len(old.requests)
    with pytest.raises(live_connection.UnreachableError):
        run(old.url, echo)
    assert ("POST", "/old") in old.requests[found:]


@pytest.mark.parametrize("revision", ["", "2025-11-25"])
def test_it_is_found_whether_the_server_would_be_probed_or_not(old: sse_server.Server, revision: str) -> None:
    assert run(old.url, echo, revision=revision) == sse_server.TEXT


def test_it_is_not_looked_for_if_the_stateless_revision_is_required(old: sse_server.Server) -> None:
    with pytest.raises(live_connection.UnreachableError):
        run(old.url, echo, revision="2026-07-28")
    assert "GET" not in methods(old)


def test_it_is_not_looked_for_after_an_internal_error(old: sse_server.Server) -> None:
    old.refusal = 500
    with pytest.raises(live_connection.UnreachableError, match="HTTP 500"):
        run(old.url, echo)
    assert "GET" not in methods(old)


@pytest.mark.parametrize(
    "get",
    [
        (200, "text/html", b"<!doctype html><title>Sign in</title>"),
        (200, "text/event-stream", b'event: message\ndata: {"a":1}\n\n'),
        (200, "text/event-stream", b"event: ping\ndata: /messages\n\n" * 1_000),
        (200, "text/event-stream", b""),
        (404, "text/plain", b"event: endpoint\ndata: /messages\n\n"),
    ],
)
def test_what_is_no_such_stream_leaves_the_first_error(
    old: sse_server.Server, get: tuple[int, str, bytes]
) -> None:
    old.get = get
    with pytest.raises(live_connection.UnreachableError, match="HTTP 405"):
        run(old.url, echo)
    assert ("POST", "/messages") not in old.requests


def test_a_stream_without_an_address_is_waited_for_briefly(old: sse_server.Server) -> None:
    old.endpoint = b": hello\n\n"
    begun = time.monotonic()
    with pytest.raises(live_connection.UnreachableError, match="HTTP 405"):
        run(old.url, echo)
    assert time.monotonic() - begun < SOON


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://evil.test/messages",
        "https://127.0.0.1/messages",
        "//evil.test/messages",
        "http://127.0.0.1:1/messages",
        "http://127.0.0.1@evil.test/messages",
        "file:///etc/passwd",
        "http://[",
    ],
)
def test_an_address_of_another_server_is_refused(old: sse_server.Server, endpoint: str) -> None:
    old.endpoint = f"event: endpoint\ndata: {endpoint}\n\n".encode()
    begun = time.monotonic()
    with pytest.raises(live_connection.UnreachableError, match="names an address of another server"):
        run(old.url, echo)
    assert time.monotonic() - begun < SOON


@pytest.mark.parametrize(
    "endpoint",
    [
        b": hello\n\nid: 1\nevent: endpoint\ndata: messages?session_id=1\n\n",
        b"event:endpoint\r\ndata:/messages?session_id=1\r\n\r\n",
        b"data: /messages?session_id=1\revent: endpoint\r\r",
    ],
)
def test_the_address_is_read_as_any_event(old: sse_server.Server, endpoint: bytes) -> None:
    old.endpoint = endpoint
    assert run(old.url, echo) == sse_server.TEXT


def test_an_address_that_changes_later_ends_the_connection(old: sse_server.Server) -> None:
    def accept(message: dict[str, Any]) -> tuple[int, bytes] | None:
        if message.get("method") != "tools/call":
            return None
        old.send(b"event: endpoint\ndata: http://evil.test/messages\n\n")
        return 204, b""

    old.accept = accept
    with pytest.raises(live_connection.UnreachableError):
        run(old.url, echo)
    assert {path for method, path in old.requests} == {"/old", "/messages?session_id=1"}


def test_headers_are_sent_with_the_stream_and_with_each_message(old: sse_server.Server) -> None:
    run(old.url, echo, headers={"x-mcp-readonly": "true"})
    assert {headers.get("x-mcp-readonly") for headers in old.headers} == {"true"}
    assert {headers.get("accept-encoding") for headers in old.headers} == {"identity"}


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (400, b"", "The server answered HTTP 400: Server returned an error response"),
        (413, b"<html>", "The server answered HTTP 413: Server returned an error response"),
        (500, b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"No disk"}}', "HTTP 500: No disk"),
    ],
)
def test_a_message_that_is_refused_ends_the_call_with_a_sentence(
    old: sse_server.Server, status: int, body: bytes, words: str
) -> None:
    async def story(server: connection.Server) -> None:
        begun = time.monotonic()
        with pytest.raises(contract.ToolError, match=words):
            await echo(server)
        assert time.monotonic() - begun < SOON
        old.accept = lambda message: None
        assert await echo(server) == sse_server.TEXT
        assert len(old.streams) == 1

    old.accept = refuse_calls(status, body)
    run(old.url, story)


def test_a_message_is_redirected_at_the_same_server(old: sse_server.Server) -> None:
    moved = iter([(307, b"")])
    old.accept = lambda message: next(moved, None) if message.get("method") == "tools/call" else None
    assert run(old.url, echo) == sse_server.TEXT
    assert ("POST", "/messages/moved?session_id=1") in old.requests


def test_a_message_whose_connection_is_cut_ends_the_call(old: sse_server.Server) -> None:
    def accept(message: dict[str, Any]) -> None:
        if message.get("method") == "tools/call":
            raise ConnectionResetError

    old.accept = accept
    old.handle_error = lambda request, client_address: None  # type: ignore[method-assign]
    begun = time.monotonic()
    with pytest.raises(live_connection.UnreachableError):
        run(old.url, echo)
    assert time.monotonic() - begun < SOON


@pytest.mark.parametrize("status", [404, 410])
def test_a_call_whose_session_is_unknown_is_sent_again_in_a_new_one(
    old: sse_server.Server, status: int
) -> None:
    async def story(server: connection.Server) -> None:
        await echo(server)
        refusals = iter([(status, b"Could not find session")])
        old.accept = lambda message: next(refusals, None) if message.get("method") == "tools/call" else None
        answer = await echo(server)
        assert [block["text"] for block in answer["content"]] == ["echoed", results.NEW_SESSION]
        assert len(old.streams) == 2

    run(old.url, story)


def test_the_end_of_the_stream_ends_the_calls_and_the_next_one_says_that_the_session_is_new(
    old: sse_server.Server,
) -> None:
    def accept(message: dict[str, Any]) -> tuple[int, bytes] | None:
        if message.get("method") != "tools/call":
            return None
        old.send(b"")
        return 204, b""

    async def story(server: connection.Server) -> None:
        old.accept = accept
        with pytest.raises(live_connection.UnreachableError):
            await echo(server)
        old.accept = lambda message: None
        answer = await echo(server)
        assert [block["text"] for block in answer["content"]] == ["echoed", results.NEW_SESSION]

    run(old.url, story)


def test_an_event_that_is_too_large_ends_the_connection_with_the_reason(old: sse_server.Server) -> None:
    def accept(message: dict[str, Any]) -> tuple[int, bytes] | None:
        if message.get("method") != "tools/call":
            return None
        for _ in range(40):
            old.send(b"data: " + b"x" * 65_536 + b"\n")
        return 204, b""

    async def story(server: connection.Server) -> None:
        begun = time.monotonic()
        with pytest.raises(live_connection.UnreachableError, match="more than 1048576 bytes"):
            await echo(server)
        assert time.monotonic() - begun < SOON

    old.accept = accept
    run(old.url, story)


@pytest.mark.parametrize(
    ("data", "outcome"),
    [
        (b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"\\ud83d"}]}}', "\ufffd"),
        (b'{"id":%d,"result":{"content":[{"type":"text","text":"echoed"}]}}', "echoed"),
        (b'{"jsonrpc":"2.0","id":%d,"error":"quota exceeded"}', "quota exceeded"),
        (b'[{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"echoed"}]}}]', "echoed"),
        (b'{"jsonrpc":"2.0","id":%d,"result":', "cannot be read"),
    ],
)
def test_an_answer_is_read_as_leniently_as_that_of_a_process(
    old: sse_server.Server, data: bytes, outcome: str
) -> None:
    def accept(message: dict[str, Any]) -> tuple[int, bytes] | None:
        if message.get("method") != "tools/call":
            return None
        old.send(b"event: message\ndata: " + data % message["id"] + b"\n\n")
        return 204, b""

    async def story(server: connection.Server) -> str:
        begun = time.monotonic()
        try:
            return json.dumps(await echo(server), ensure_ascii=False)
        except contract.ToolError as error:
            return str(error)
        finally:
            assert time.monotonic() - begun < SOON

    old.accept = accept
    assert outcome in run(old.url, story)


def test_a_call_that_is_denied_meanwhile_is_never_sent(old: sse_server.Server) -> None:
    async def deny() -> None:
        raise PermissionError

    async def story(server: connection.Server) -> None:
        await echo(server)
        sent = len(old.messages)
        with pytest.raises(PermissionError):
            await harness.call(server, "echo", {}, check=deny)
        assert await echo(server) == sse_server.TEXT
        assert [message["method"] for message in old.messages[sent:]] == ["tools/call"]

    run(old.url, story)


def test_a_call_that_is_cancelled_is_cancelled_at_the_server(old: sse_server.Server) -> None:
    async def story(server: connection.Server) -> None:
        old.accept = refuse_calls(204)
        waiting = asyncio.ensure_future(echo(server))
        while not any(sent["method"] == "tools/call" for sent in old.messages):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        waiting.cancel()
        while old.messages[-1]["method"] != "notifications/cancelled":  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        [asked] = [message for message in old.messages if message["method"] == "tools/call"]
        assert old.messages[-1]["params"]["requestId"] == asked["id"]

    run(old.url, story)


def test_a_busy_message_delays_no_other_call(old: sse_server.Server) -> None:
    def accept(message: dict[str, Any]) -> None:
        if message.get("method") == "tools/call" and message["params"]["arguments"].get("wait"):
            old.over.wait(30)

    async def story(server: connection.Server) -> None:
        slow = asyncio.ensure_future(harness.call(server, "echo", {"wait": True}))
        await asyncio.sleep(0.05)
        begun = time.monotonic()
        assert await echo(server) == sse_server.TEXT
        assert time.monotonic() - begun < SOON
        slow.cancel()

    old.accept = accept
    run(old.url, story)
