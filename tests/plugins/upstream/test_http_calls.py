"""Tests of calls over Streamable HTTP: responses as JSON and as events, what ends a call, and what a call ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
import pytest

from tests.plugins.upstream import harness, listing
from toolbelt.core import connections
from toolbelt.plugins import contract
from toolbelt.plugins.upstream import bodies, connection, live_connection, transports

LEGACY, MODERN = "2025-11-25", "2026-07-28"
COMPLETE = {"resultType": "complete"}
RESULT = {"content": [{"type": "text", "text": "done"}]}


class Server:
    """A small MCP server of either era, with one tool; ``answer`` writes the response to a call."""

    def __init__(
        self, revision: str, answer: Callable[[Server, Any, asyncio.StreamWriter], Awaitable[None]]
    ) -> None:
        self.revision, self._answer = revision, answer
        # The received requests: HTTP method, MCP method and headers.
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.ended: list[str] = []
        # The path of the last request.
        self.path = ""
        self.released = asyncio.Event()

    @contextlib.asynccontextmanager
    async def served(self) -> AsyncIterator[connection.Server]:
        """Run the server; yield a connection of Toolbelt to it."""
        served = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{served.sockets[0].getsockname()[1]}/mcp"
        settings = connections.of({"url": url, "timeout": 10})
        assert settings is not None
        async with asyncio.timeout(40), served:
            client = connection.Server(settings, environ={})
            try:
                yield client
            finally:
                self.released.set()
                await client.close()
                await asyncio.sleep(0.05)

    def calls(self) -> list[dict[str, str]]:
        """Return the headers of each received call."""
        return [headers for _, method, headers in self.requests if method == "tools/call"]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                message = json.loads(body) if body else {}
                self.requests.append((head[0].split()[0], message.get("method", ""), headers))
                self.path = head[0].split()[1]
                await self._reply(head[0].split()[0], message, writer)
        writer.close()

    async def _reply(self, verb: str, message: Any, writer: asyncio.StreamWriter) -> None:
        session = "mcp-session-id: s1\r\n" if self.revision == LEGACY else ""
        match message.get("method"):
            case "tools/call":
                await self._answer(self, message, writer)
            case "server/discover" if self.revision == MODERN:
                result = {
                    "supportedVersions": [MODERN],
                    "capabilities": {"tools": {}},
                    "resultType": "complete",
                }
                write(writer, result_message(message, {**result, "ttlMs": 0, "cacheScope": "private"}))
            case "initialize":
                result = {"protocolVersion": LEGACY, "capabilities": {"tools": {}}}
                result["serverInfo"] = {"name": "small", "version": "1"}
                write(writer, result_message(message, result), headers=session)
            case "tools/list":
                more = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
                listed = {"tools": [listing.tool("work", "Works.")]}
                write(writer, result_message(message, listed | (more if self.revision == MODERN else {})))
            case None if verb == "GET" and self.requests[-1][2].get("last-event-id"):
                await self._answer(self, None, writer)
            case None:
                write(writer, b"", status=405)
            case method if "id" in message:
                error = {"code": -32601, "message": f"There is no {method}."}
                write(writer, json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode())
            case _:
                write(writer, b"", status=202)
        await writer.drain()


def result_message(message: Any, result: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()


def write(writer: asyncio.StreamWriter, body: bytes, *, status: int = 200, headers: str = "") -> None:
    """Write a response, which sets a cookie."""
    kind = "content-type: application/json\r\n" if body else ""
    head = f"HTTP/1.1 {status} -\r\n{kind}set-cookie: user=1\r\n{headers}content-length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)


def begin_events(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")


def event(body: bytes, *, id_: str = "") -> bytes:
    return (f"id: {id_}\nretry: 10\n" if id_ else "").encode() + b"event: message\ndata: " + body + b"\n\n"


def notification(method: str, params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode()


async def as_json(server: Server, message: Any, writer: asyncio.StreamWriter) -> None:
    write(
        writer,
        result_message(message, RESULT | ({"resultType": "complete"} if server.revision == MODERN else {})),
    )


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_a_call_has_the_headers_of_its_protocol_revision(revision: str) -> None:
    async def story() -> None:
        server = Server(revision, as_json)
        async with server.served() as client:
            answers = await asyncio.gather(*(harness.call(client, "work", {}) for _ in range(5)))
        assert [answer["content"] for answer in answers] == [RESULT["content"]] * 5
        for headers in server.calls():
            assert headers["mcp-protocol-version"] == revision
            assert headers.get("mcp-session-id") == ("s1" if revision == LEGACY else None)
            assert headers.get("mcp-name") == ("work" if revision == MODERN else None)

    asyncio.run(story())


@pytest.mark.parametrize("location", ["/mcp/", "http://127.0.0.1:9/mcp"])
def test_a_redirect_of_a_call_is_followed_only_within_its_server(location: str) -> None:
    async def redirect(server: Server, message: Any, writer: asyncio.StreamWriter) -> None:
        if server.path == "/mcp":
            write(writer, b"", status=307, headers=f"location: {location}\r\n")
        else:
            await as_json(server, message, writer)

    async def story() -> Any:
        async with Server(LEGACY, redirect).served() as client:
            return await harness.call(client, "work", {})

    if location.startswith("/"):
        assert asyncio.run(story())["content"] == RESULT["content"]
    else:
        with pytest.raises(contract.ToolError, match="not followed"):
            asyncio.run(story())


@pytest.mark.parametrize("status", [301, 302, 303])
def test_a_call_is_not_repeated_after_a_redirect_that_changes_the_method(status: int) -> None:
    async def redirect(server: Server, message: Any, writer: asyncio.StreamWriter) -> None:
        write(writer, b"", status=status, headers="location: /done\r\n")

    async def story() -> int:
        server = Server(LEGACY, redirect)
        async with server.served() as client:
            with pytest.raises(contract.ToolError, match="not followed"):
                await harness.call(client, "work", {})
        return len(server.calls())

    assert asyncio.run(story()) == 1


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_cookies_of_a_server_are_not_sent_back(revision: str) -> None:
    async def redirect_once(server: Server, message: Any, writer: asyncio.StreamWriter) -> None:
        if server.path == "/mcp":
            write(writer, b"", status=307, headers="location: /mcp/\r\n")
        else:
            await as_json(server, message, writer)

    async def story() -> Server:
        server = Server(revision, redirect_once)
        async with server.served() as client:
            await harness.call(client, "work", {})
            await harness.call(client, "work", {})
        return server

    server = asyncio.run(story())

    assert len(server.calls()) == 4
    assert not [headers for _, _, headers in server.requests if "cookie" in headers]


def test_progress_events_are_reported_before_the_result() -> None:
    async def in_events(server: Server, message: Any, writer: asyncio.StreamWriter) -> None:
        token = message["params"]["_meta"]["progressToken"]
        begin_events(writer)
        params = {"progressToken": token, "progress": 1, "message": "half"}
        writer.write(event(notification("notifications/progress", params)))
        writer.write(event(result_message(message, RESULT)))
        await writer.drain()
        writer.close()

    reported: list[tuple[float, str | None]] = []

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        reported.append((progress, message))

    async def story() -> None:
        async with Server(LEGACY, in_events).served() as client:
            assert (await harness.call(client, "work", {}, progress=progress))["content"] == RESULT["content"]
            await asyncio.sleep(0)

    asyncio.run(story())

    assert reported == [(1.0, "half")]


def test_a_broken_response_stream_is_resumed_from_its_last_event() -> None:
    async def broken(server: Server, message: Any, writer: asyncio.StreamWriter) -> None:
        begin_events(writer)
        if message is not None:
            server.message = message  # type: ignore[attr-defined]
            writer.write(event(b"", id_="e1"))
        else:
            writer.write(event(result_message(server.message, RESULT)))  # type: ignore[attr-defined]
        await writer.drain()
        writer.close()

    async def story() -> Server:
        server = Server(LEGACY, broken)
        async with server.served() as client:
            assert (await harness.call(client, "work", {}))["content"] == RESULT["content"]
        return server

    server = asyncio.run(story())

    assert len(server.calls()) == 1
    resumed = [headers for verb, _, headers in server.requests if "last-event-id" in headers]
    assert [headers["last-event-id"] for headers in resumed] == ["e1"]
    assert [(headers["mcp-session-id"], headers["mcp-protocol-version"]) for headers in resumed] == [
        ("s1", LEGACY)
    ]


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_a_cancelled_call_is_cancelled_at_the_server(revision: str) -> None:
    called, hung_up = asyncio.Event(), asyncio.Event()

    async def never(server: Server, message: Any, writer: asyncio.StreamWriter) -> None:
        called.set()
        with contextlib.suppress(ConnectionError):
            while not server.released.is_set():
                if not started:
                    begin_events(writer)
                    started.append(True)
                writer.write(b": still there\n\n")
                await writer.drain()
                if writer.transport.is_closing():
                    break
                await asyncio.sleep(0.01)
        hung_up.set()

    started: list[bool] = []

    async def story() -> list[str]:
        server = Server(revision, never)
        async with server.served() as client:
            calling = asyncio.create_task(harness.call(client, "work", {}))
            await called.wait()
            calling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await calling
            if revision == MODERN:
                # Closing the request cancels it.
                await hung_up.wait()
                assert not server.released.is_set()
            else:
                while "notifications/cancelled" not in [method for _, method, _ in server.requests]:  # noqa: ASYNC110 (the server records it)
                    await asyncio.sleep(0.01)
            assert client.status().state == "open"
        return [method for _, method, _ in server.requests]

    assert ("notifications/cancelled" in asyncio.run(story())) is (revision == LEGACY)


class Intercepting(Server):
    """A server with answers of its own to some messages: a function that returns whether it has answered."""

    def __init__(
        self, revision: str, answer: Any, intercept: Callable[[Any, asyncio.StreamWriter], Any]
    ) -> None:
        super().__init__(revision, answer)
        self._intercept = intercept

    async def _reply(self, verb: str, message: Any, writer: asyncio.StreamWriter) -> None:
        if not await self._intercept(message, writer):
            await super()._reply(verb, message, writer)


@pytest.mark.parametrize("is_closed", [False, True], ids=["silence", "a closed connection"])
def test_notifications_that_a_server_does_not_answer_delay_no_call(is_closed: bool) -> None:
    released = asyncio.Event()

    async def ignore_cancellations(message: Any, writer: asyncio.StreamWriter) -> bool:
        if message.get("method") != "notifications/cancelled":
            return False
        if is_closed:
            writer.close()
        else:
            await released.wait()
        return True

    async def first_never(server: Server, message: Any, writer: asyncio.StreamWriter) -> None:
        if message["params"]["arguments"].get("wait"):
            await server.released.wait()
        else:
            await as_json(server, message, writer)

    async def story() -> Any:
        server = Intercepting(LEGACY, first_never, ignore_cancellations)
        async with server.served() as client:
            waiting = [asyncio.create_task(harness.call(client, "work", {"wait": True})) for _ in range(5)]
            while len(server.calls()) < 5:  # noqa: ASYNC110 (the server records it)
                await asyncio.sleep(0.01)
            for call in waiting:
                call.cancel()
            while server.requests[-1][1] != "notifications/cancelled":  # noqa: ASYNC110 (the server records it)
                await asyncio.sleep(0.01)
            try:
                async with asyncio.timeout(transports.NOTIFICATION_SECONDS):
                    return await harness.call(client, "work", {})
            finally:
                released.set()

    assert asyncio.run(story())["content"] == RESULT["content"]


@pytest.mark.parametrize("is_denied", [False, True], ids=["cancelled", "cancelled and denied"])
def test_a_call_that_is_cancelled_while_it_waits_for_a_connection_is_never_sent(
    is_denied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect, release = anyio.connect_tcp, asyncio.Event()
    slow: list[bool] = []

    async def connect_slowly(*args: Any, **options: Any) -> Any:
        # The first connection after this is switched on, which is the call's.
        if slow and slow.pop():
            await release.wait()
        return await connect(*args, **options)

    monkeypatch.setattr(anyio, "connect_tcp", connect_slowly)
    checks: list[bool] = []

    async def check() -> None:
        checks.append(is_denied)
        if is_denied:
            raise contract.ToolError("denied")

    async def hold(server: Server, message: Any, writer: asyncio.StreamWriter) -> None:
        if message["params"]["arguments"].get("hold"):
            await server.released.wait()
        await as_json(server, message, writer)

    async def story() -> int:
        server = Server(LEGACY, hold)
        async with server.served() as client:
            held = [asyncio.create_task(harness.call(client, "work", {"hold": True})) for _ in range(2)]
            while len(server.calls()) < 2:  # noqa: ASYNC110 (the server records it)
                await asyncio.sleep(0.01)
            slow.append(True)
            call = asyncio.create_task(harness.call(client, "work", {}, check=check))
            while slow:  # noqa: ASYNC110 (the connection is recorded)
                await asyncio.sleep(0.01)
            call.cancel()
            while server.requests[-1][1] != "notifications/cancelled":  # noqa: ASYNC110 (the server records it)
                await asyncio.sleep(0.01)
            release.set()
            await asyncio.sleep(0.2)
            sent = len(server.calls())
            for running in held:
                running.cancel()
            return sent

    assert asyncio.run(story()) == 2
    assert checks == []


def test_a_tool_whose_question_was_answered_in_a_lost_session_is_not_called_again() -> None:
    lost = asyncio.Event()
    question = json.dumps({"jsonrpc": "2.0", "id": 77, "method": "ping"}).encode()

    async def ask(server: Server, message: Any, writer: asyncio.StreamWriter) -> None:
        begin_events(writer)
        writer.write(event(question))
        await writer.drain()
        await lost.wait()
        writer.close()

    async def refuse_the_answer(message: Any, writer: asyncio.StreamWriter) -> bool:
        if message.get("id") != 77:
            return False
        write(writer, b"", status=404)
        await writer.drain()
        lost.set()
        return True

    async def story() -> int:
        server = Intercepting(LEGACY, ask, refuse_the_answer)
        async with server.served() as client:
            with pytest.raises(live_connection.UnreachableError):
                await harness.call(client, "work", {})
        return len(server.calls())

    assert asyncio.run(story()) == 1


def test_lists_are_read_from_a_server_that_answers_with_the_text_of_an_id() -> None:
    async def with_text(message: Any, writer: asyncio.StreamWriter) -> bool:
        match message.get("method"):
            case "initialize":
                result: dict[str, Any] = {"protocolVersion": LEGACY}
                result["capabilities"] = {"tools": {}, "prompts": {}}
                result["serverInfo"] = {"name": "small", "version": "1"}
            case "prompts/list":
                result = {"prompts": [{"name": "p"}]}
            case _:
                return False
        write(writer, result_message({"id": str(message["id"])}, result))
        await writer.drain()
        return True

    async def story() -> Any:
        async with Intercepting(LEGACY, as_json, with_text).served() as client:
            return await client.tools()

    listed = asyncio.run(story())
    assert (listed.non_tools["prompt"], listed.problems) == (({"name": "p"},), ())


def test_a_response_that_is_too_large_fails_only_its_own_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "MAX_BYTES", 10_000)

    async def flood(server: Server, message: Any, writer: asyncio.StreamWriter) -> None:
        is_large = message["params"]["arguments"].get("large")
        if not is_large:
            await server.released.wait()
        text = "x" * 20_000 if is_large else "small"
        write(writer, result_message(message, {"content": [{"type": "text", "text": text}]}))

    async def story() -> tuple[Any, Any]:
        server = Server(LEGACY, flood)
        async with server.served() as client:
            waiting = asyncio.create_task(harness.call(client, "work", {}))
            while not server.calls():  # noqa: ASYNC110 (the server records it)
                await asyncio.sleep(0.01)
            with pytest.raises(contract.ToolError) as error:
                await harness.call(client, "work", {"large": True})
            server.released.set()
            return str(error.value), await waiting

    error, answer = asyncio.run(story())
    assert "more than 10000 bytes" in error
    assert answer["content"][0]["text"] == "small"


def test_a_connection_closed_during_a_call_fails_all_of_its_calls() -> None:
    async def hang_up(server: Server, message: Any, writer: asyncio.StreamWriter) -> None:
        if message["params"]["arguments"].get("hang_up"):
            writer.close()
        else:
            await server.released.wait()

    async def story() -> tuple[Any, ...]:
        server = Server(LEGACY, hang_up)
        async with server.served() as client:
            waiting = asyncio.create_task(harness.call(client, "work", {}))
            while not server.calls():  # noqa: ASYNC110 (the server records it)
                await asyncio.sleep(0.01)
            outcomes = await asyncio.gather(
                harness.call(client, "work", {"hang_up": True}), waiting, return_exceptions=True
            )
        # No request to end the session was sent, because the server might not answer it.
        assert "DELETE" not in [verb for verb, _, _ in server.requests]
        return tuple(outcomes)

    for error in asyncio.run(story()):
        assert isinstance(error, live_connection.UnreachableError)
        assert str(error) == "Connection closed."


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
@pytest.mark.parametrize("as_events", [False, True])
def test_a_servers_own_error_with_the_clients_code_ends_nothing(revision: str, as_events: bool) -> None:
    error = {"code": -32000, "message": "The quota is used up."}

    async def answer(server: Server, message: Any, writer: asyncio.StreamWriter) -> None:
        if len(server.calls()) > 1:
            return write(writer, result_message(message, RESULT | COMPLETE))
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode()
        if not as_events:
            return write(writer, body)
        begin_events(writer)
        writer.write(event(body))
        writer.close()

    async def story() -> None:
        server = Server(revision, answer)
        async with server.served() as client:
            with pytest.raises(contract.ToolError, match=r"^The quota is used up\.$"):
                await harness.call(client, "work", {})
            assert (await harness.call(client, "work", {}))["content"] == RESULT["content"]
        begun = [method for _, method, _ in server.requests if method in ("initialize", "server/discover")]
        assert len([method for method in begun if method == begun[-1]]) == 1

    asyncio.run(story())


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_an_answer_that_ends_too_early_is_no_answer_of_the_tool(revision: str) -> None:
    async def answer(server: Server, message: Any, writer: asyncio.StreamWriter) -> None:
        begin_events(writer)
        writer.write(b": nothing\n\n")
        writer.close()

    async def story() -> None:
        async with Server(revision, answer).served() as client:
            with pytest.raises(live_connection.UnreachableError):
                await harness.call(client, "work", {})

    asyncio.run(story())


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_an_error_names_the_http_status_and_when_to_try_again(revision: str) -> None:
    async def answer(server: Server, message: Any, writer: asyncio.StreamWriter) -> None:
        write(writer, b'{"error": "slow down"}', status=429, headers="retry-after: 30\r\n")

    async def story() -> None:
        async with Server(revision, answer).served() as client:
            with pytest.raises(
                contract.ToolError, match=r"^The server answered HTTP 429 \(Retry-After: 30\): "
            ):
                await harness.call(client, "work", {})
            assert client.status().state == "open"

    asyncio.run(story())


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_an_answer_to_a_call_is_its_own_whatever_id_it_has(revision: str) -> None:
    async def answer(server: Server, message: Any, writer: asyncio.StreamWriter) -> None:
        write(writer, result_message({"id": "another"}, RESULT | COMPLETE))

    async def story() -> None:
        async with Server(revision, answer).served() as client:
            assert (await harness.call(client, "work", {}))["content"] == RESULT["content"]

    asyncio.run(story())
