"""Calls of tools over Streamable HTTP, each in its own task, with the official client's handling of a POST.

The official client passes each message through three queues and two tasks on its way out, and two queues on its way
back, which costs more than the request. Calls of tools take a shorter path; all other messages take the official one.
Their requests skip what the HTTP client does for authentication, cookies and redirects.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import anyio
import httpx2
import mcp_types
from mcp.client import streamable_http
from mcp.shared import inbound
from mcp_types import version

# The maximum number of messages that wait to be read. While it is reached, nothing else is read from the server.
MAX_WAITING = 16


@contextlib.asynccontextmanager
async def connected(
    url: str,
    client: httpx2.AsyncClient,
    network: httpx2.AsyncBaseTransport,
    session_id: Callable[[], str | None],
    max_event_bytes: int,
) -> AsyncIterator[Any]:
    """Open a Streamable HTTP transport. ``network`` is the client's transport, and ``session_id`` returns the id of the
    session, if there is one.
    """
    official = streamable_http.streamable_http_client(
        url, http_client=client, max_sse_event_size=max_event_bytes
    )
    # Parsed once.
    parsed: Any = httpx2.URL(url)
    failures: list[Exception] = []
    with anyio.CancelScope() as scope:

        def fail(error: Exception) -> None:
            # The session of a failing server is not ended, because it may not answer that request either.
            failures.append(error)
            scope.cancel()

        async with official as (read, write):
            incoming = Incoming()
            transport = streamable_http.StreamableHTTPTransport(parsed, max_sse_event_size=max_event_bytes)
            outgoing = Outgoing(write, incoming, transport, Client(client, network), session_id, fail)
            taking = asyncio.create_task(incoming.take_from(read))
            try:
                yield incoming, outgoing
            finally:
                taking.cancel()
                outgoing.end()
    if failures:
        raise failures[0]


class Client:
    """The part of an HTTP client that sends calls, with its headers and time limits, without cookies and logins.

    ``network`` is its transport.
    """

    def __init__(self, whole: httpx2.AsyncClient, network: httpx2.AsyncBaseTransport) -> None:
        self._whole, self._network = whole, network
        self._headers, self._timeouts = dict(whole.headers), whole.timeout.as_dict()
        self.max_redirects = whole.max_redirects

    def build_request(
        self, method: str, url: httpx2.URL, *, headers: Mapping[str, str], json: Any = None
    ) -> httpx2.Request:
        """Return a request."""
        lowercase = {name.lower(): value for name, value in headers.items()}
        about = {"timeout": self._timeouts}
        return httpx2.Request(
            method, url, headers={**self._headers, **lowercase}, json=json, extensions=about
        )

    async def send(self, request: httpx2.Request, *, stream: bool, follow_redirects: bool) -> httpx2.Response:
        """Send a request. A redirect is not followed: the response has the next request, for the caller to check."""
        response = await self._network.handle_async_request(request)
        response.request = request
        if response.has_redirect_location:
            # As the whole client does, except that it would have to send the call again for this.
            with contextlib.suppress(httpx2.RemoteProtocolError):
                response.next_request = self._whole._build_redirect_request(request, response)
        return response


class Incoming:
    """The messages from a server: those of the official client, and the answers to calls."""

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[tuple[contextvars.Context, Any] | None] = asyncio.Queue(MAX_WAITING)
        # The context of the last message, as in the official client's own stream.
        self.last_context: contextvars.Context | None = None

    async def take_from(self, read: Any) -> None:
        """Receive the messages of the official client until it ends."""
        with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            async for item in read:
                await self._waiting.put((read.last_context, item))
        await self._waiting.put(None)

    async def send(self, item: Any) -> None:
        """Add a message that belongs to the current context."""
        await self._waiting.put((contextvars.copy_context(), item))

    async def receive(self) -> Any:
        """Return the next message. Raise anyio.EndOfStream if the connection has ended."""
        received = await self._waiting.get()
        if received is None:
            self._waiting.put_nowait(None)
            raise anyio.EndOfStream
        self.last_context, item = received
        return item

    async def aclose(self) -> None:
        """Do nothing: there is nothing to close."""


class Outgoing:
    """The messages to a server. ``fail`` is called with an error of a call that ends the connection for all."""

    def __init__(
        self,
        official: Any,
        incoming: Incoming,
        transport: streamable_http.StreamableHTTPTransport,
        client: Client,
        session_id: Callable[[], str | None],
        fail: Callable[[Exception], None],
    ) -> None:
        self._official, self._incoming, self._transport = official, incoming, transport
        self._client, self._session_id, self._fail = client, session_id, fail
        # The running calls; and those that are cancelled by ending their request, by its id.
        self._tasks: set[asyncio.Task[None]] = set()
        self._cancellable: dict[mcp_types.RequestId, asyncio.Task[None]] = {}

    async def send(self, item: Any) -> None:
        """Send a message, without waiting for the answer."""
        message = item.message
        if isinstance(message, mcp_types.JSONRPCRequest) and message.method == "tools/call":
            headers = (item.metadata.headers if item.metadata is not None else None) or {}
            revision = headers.get(inbound.MCP_PROTOCOL_VERSION_HEADER)
            # Not in a task group, which makes a task five times as expensive.
            task = asyncio.create_task(self._post(item, revision))
            self._tasks.add(task)
            if revision in version.MODERN_PROTOCOL_VERSIONS:
                self._cancellable[message.id] = task
            task.add_done_callback(functools.partial(self._note_end, message.id))
        elif not self._is_cancelled_here(message):
            await self._official.send(item)

    def end(self) -> None:
        """Cancel the calls that are still running."""
        for task in self._tasks:
            task.cancel()

    async def aclose(self) -> None:
        """Close the stream."""
        await self._official.aclose()

    async def __aenter__(self) -> Outgoing:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.aclose()

    async def _post(self, item: Any, revision: str | None) -> None:
        self._transport.session_id = self._session_id()
        # For requests that resume an answer, which have no headers of their own.
        self._transport._protocol_version_header = revision
        context = streamable_http.RequestContext(
            client=self._client,  # type: ignore[arg-type]
            session_id=self._transport.session_id,
            session_message=item,
            metadata=item.metadata,
            read_stream_writer=self._incoming,  # type: ignore[arg-type]
        )
        await self._transport._handle_post_request(context)

    def _note_end(self, id_: mcp_types.RequestId, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if self._cancellable.get(id_) is task:
            del self._cancellable[id_]
        if not task.cancelled() and isinstance(error := task.exception(), Exception):
            self._fail(error)

    def _is_cancelled_here(self, message: Any) -> bool:
        """Cancel the call that a notification cancels, if ending its request is how. Return whether it is."""
        if (
            not isinstance(message, mcp_types.JSONRPCNotification)
            or message.method != "notifications/cancelled"
        ):
            return False
        task = self._cancellable.get((message.params or {}).get("requestId", ""))
        if task is not None:
            task.cancel()
        return task is not None
