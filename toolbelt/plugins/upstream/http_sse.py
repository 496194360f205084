"""The transport of MCP 2024-11-05, HTTP+SSE: a stream of events that stays open, and an address for messages.

The official client gives up silently if a message cannot be sent, and reads no message that its schema refuses: here,
both answer the request that waits. It sends one message after the other, and some servers end a request only once its
call has ended, so messages are sent in the background.

This module requires ``mcp``, so it is only imported when a connection is opened.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import urllib.parse
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import anyio
import httpx2
import mcp_types
from anyio.streams.memory import MemoryObjectSendStream
from mcp.client import sse
from mcp.shared import message

from toolbelt.plugins.upstream import answers, last_check, lenient, live_connection, transports

# The largest event that the official client reads.
MAX_EVENT_BYTES = 1024 * 1024
# How far a stream is read until it names the address for messages.
MAX_HEAD_BYTES, MAX_HEAD_PARTS = 8 * 1024, 100
# How long the answer to a message is waited for, if its call may last as long.
POST_SECONDS = 3_600.0
# How often a message is redirected, and how much of a refusal is read.
MAX_REDIRECTS, MAX_REFUSAL_BYTES = 3, 4 * 1024
_END_OF_EVENT = (b"\n\n", b"\r\r", b"\n\r\n")
_REFUSED = "Server returned an error response"

Received = message.SessionMessage
# Answers the request with this id with an error.
Fail = Callable[[Any, mcp_types.ErrorData], Awaitable[None]]


class EndpointError(httpx2.SSEError):
    """The stream names no address for messages, or one that is not the server's."""


@contextlib.asynccontextmanager
async def opened(
    url: str,
    headers: Mapping[str, str],
    seconds: float,
    answered: transports.Answered,
    give_up: transports.GiveUp,
    session_over: transports.Notify,
    on_endpoint: transports.Notify,
    limit: float | None,
    tokens: live_connection.Tokens | None = None,
) -> AsyncIterator[Any]:
    """Communicate over HTTP+SSE, with the same guards as over Streamable HTTP.

    ``on_endpoint`` is called once the server has named the address for messages; it has ``limit`` seconds for that.
    ``answered`` is called with the status of each answer to a message, and its Retry-After, ``give_up`` with the reason
    if an event cannot be read, and ``session_over`` if the server ends the stream. Raise EndpointError if it names an
    address of another server.
    """
    # As the client compares it with the address for messages.
    url = str(httpx2.URL(url))
    waiting: dict[lenient.Id, None] = {}
    into, read = anyio.create_memory_object_stream[Received](0)

    async def fail(id_: Any, error: mcp_types.ErrorData) -> None:
        answer = mcp_types.JSONRPCError(jsonrpc="2.0", id=id_, error=error)
        lenient.answered(answer, waiting)
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await into.send(message.SessionMessage(answer))

    inner = await asyncio.to_thread(transports.pool)
    guarded = transports.UpstreamTransport(inner, answered=answered, give_up=give_up, tokens=tokens)
    transport = _Transport(guarded, url, fail, give_up, waiting)

    def client(headers: Any = None, timeout: Any = None, auth: Any = None) -> httpx2.AsyncClient:
        return transports.client(transport, headers or {}, httpx2.Timeout(seconds, read=None))

    async with into, read, contextlib.AsyncExitStack() as stack:
        async with asyncio.timeout(limit):
            received, write = await stack.enter_async_context(
                sse.sse_client(url, dict(headers), httpx_client_factory=client)
            )
        on_endpoint()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_forward, received, into, waiting, give_up, session_over)
            yield read, write
            tasks.cancel_scope.cancel()


async def _forward(
    received: Any,
    into: MemoryObjectSendStream[Received],
    waiting: dict[lenient.Id, None],
    give_up: transports.GiveUp,
    session_over: transports.Notify,
) -> None:
    """Send on what the server sends, and what it sends wrongly as far as it can be read."""
    with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async with into:
            async for item in received:
                if isinstance(item, Exception) and not isinstance(item, ValueError):
                    give_up(item)
                    continue
                for each in lenient.unread(item, waiting) if isinstance(item, ValueError) else [item]:
                    lenient.answered(each.message, waiting)
                    await into.send(each)
            # The session was the stream.
            session_over()


class _Transport(httpx2.AsyncBaseTransport):
    """Opens the stream, and sends messages in the background, each of which is accepted at once."""

    def __init__(
        self,
        guarded: httpx2.AsyncBaseTransport,
        url: str,
        fail: Fail,
        give_up: transports.GiveUp,
        waiting: dict[lenient.Id, None],
    ) -> None:
        self._guarded, self._url, self._fail, self._give_up = guarded, url, fail, give_up
        self._waiting = waiting
        self._sending: set[asyncio.Task[None]] = set()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request."""
        if request.method != "POST":
            response = await self._guarded.handle_async_request(request)
            response.stream = _Events(response.stream, self._url, self._give_up)
            return response
        sent = json.loads(request.content)
        lenient.asked(mcp_types.jsonrpc_message_adapter.validate_python(sent, by_name=False), self._waiting)
        if "id" not in sent:
            # The first notification must arrive before what follows. All others are sent in the background anyway.
            await self._send(None, request)
        else:
            task = asyncio.create_task(self._send(sent["id"] if "method" in sent else None, request))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)
        return httpx2.Response(202, request=request)

    async def aclose(self) -> None:
        """End what is being sent, and close all connections."""
        for task in self._sending:
            task.cancel()
        await self._guarded.aclose()

    async def _send(self, id_: Any, request: httpx2.Request) -> None:
        """Send a message; answer the request with this id with an error if the server does not accept it."""
        check = last_check.CURRENT.get()
        try:
            async with asyncio.timeout(POST_SECONDS):
                response = await self._followed(request)
                try:
                    # A connection whose answer was not read cannot be used again.
                    body = await _head(response)
                finally:
                    await response.aclose()
        except TimeoutError:
            return
        except Exception as error:
            # Of any kind: nothing else would answer the request.
            if check is not None:
                check.is_cut = True
            if id_ is not None:
                words = str(error) or "The server ended the connection."
                await self._fail(id_, mcp_types.ErrorData(code=mcp_types.CONNECTION_CLOSED, message=words))
            return
        if response.status_code < 300 or id_ is None:
            return
        if check is not None and response.status_code in answers.GONE:
            check.has_not_run = True
        words = answers.message_of(body) or _REFUSED
        await self._fail(id_, mcp_types.ErrorData(code=mcp_types.INTERNAL_ERROR, message=words))

    async def _followed(self, request: httpx2.Request) -> httpx2.Response:
        """Return the answer to a message, after redirects that keep it and stay at the server."""
        response = await self._guarded.handle_async_request(request)
        for _ in range(MAX_REDIRECTS):
            location = response.headers.get("location", "")
            if response.status_code not in (307, 308) or not location:
                break
            try:
                url = httpx2.URL(urllib.parse.urljoin(str(request.url), location))
            except (ValueError, httpx2.InvalidURL):
                break
            if not is_same_origin(url, request.url):
                break
            await response.aclose()
            request = httpx2.Request("POST", url, headers=request.headers, content=request.content)
            response = await self._guarded.handle_async_request(request)
        return response


class _Events(httpx2.AsyncByteStream):
    """The stream of events: nothing of it is passed on before it has named the address for messages."""

    def __init__(self, inner: Any, url: str, give_up: transports.GiveUp) -> None:
        self._inner, self._url, self._give_up = inner, url, give_up

    async def __aiter__(self) -> AsyncIterator[bytes]:
        parts = aiter(self._inner)
        yield await self._head(parts)
        size, end = 0, b""
        async for part in parts:
            joined = end + part
            cut = max(joined.rfind(mark) for mark in _END_OF_EVENT)
            size = size + len(part) if cut < 0 else len(joined) - cut
            if size > MAX_EVENT_BYTES:
                error = httpx2.SSEError(f"The server sent an event of more than {MAX_EVENT_BYTES} bytes.")
                self._give_up(error)
                raise error
            end = joined[-2:]
            yield part

    async def _head(self, parts: AsyncIterator[bytes]) -> bytes:
        """Return what the stream begins with, up to the address for messages. Raise EndpointError."""
        head, count = b"", 0
        try:
            async for part in parts:
                head, count = head + part, count + 1
                if (endpoint := _endpoint(head)) is not None:
                    self._check(endpoint)
                    # The official client takes a last \r for half of a line break, and would wait for the rest.
                    return head + b"\n" if head.endswith(b"\r") else head
                if len(head) > MAX_HEAD_BYTES or count > MAX_HEAD_PARTS:
                    break
        except httpx2.TransportError as error:
            if isinstance(error, EndpointError):
                raise
            # The official client would wait for more after any other error.
            raise EndpointError(str(error)) from error
        raise EndpointError("The server named no address for messages.")

    def _check(self, endpoint: str) -> None:
        try:
            joined = urllib.parse.urljoin(self._url, endpoint)
            is_own = is_same_origin(httpx2.URL(joined), httpx2.URL(self._url))
            # As the official client compares them, which would wait for another one.
            is_own = is_own and urllib.parse.urlsplit(joined)[:2] == urllib.parse.urlsplit(self._url)[:2]
        except (ValueError, httpx2.InvalidURL):
            is_own = False
        if not is_own:
            error = EndpointError(
                "The server names an address of another server for its messages, so nothing is sent there:"
                f" {endpoint[:200]}"
            )
            self._give_up(error)
            raise error

    async def aclose(self) -> None:
        """Close the stream."""
        await self._inner.aclose()


def is_same_origin(one: httpx2.URL, other: httpx2.URL) -> bool:
    """Return whether two addresses have the same scheme, host and port."""
    return (one.scheme, one.host, one.port) == (other.scheme, other.host, other.port)


def _endpoint(head: bytes) -> str | None:
    """Return the address for messages that the beginning of a stream names; None if it names none yet."""
    request = httpx2.Request("GET", "http://server")
    kind = {"content-type": "text/event-stream"}
    response = httpx2.Response(200, headers=kind, content=head, request=request)
    events = httpx2.EventSource(response, max_event_size=MAX_EVENT_BYTES)
    return next((event.data for event in events if event.event == "endpoint"), None)


async def _head(response: httpx2.Response) -> bytes:
    """Return the beginning of an answer."""
    head = b""
    async for part in response.aiter_bytes():
        head += part
        if len(head) > MAX_REFUSAL_BYTES:
            break
    return head
