"""The HTTP client's transport: connections to servers that are kept open, and used for one request at a time.

It has what MCP needs of HTTP/1.1, in fewer steps than the client's own pool, which cost more than the rest of a call.
"""

from __future__ import annotations

import asyncio
import functools
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

import httpx2

from toolbelt.plugins.upstream.http_connection import Connection, Origin

T = TypeVar("T")

# How many connections are open at a time, and how many of them wait for a request.
MAX_CONNECTIONS, MAX_IDLE = 100, 20
# How long and how large the rest of a response may be that the client does not read, so that its connection is kept.
REST_SECONDS, MAX_REST_BYTES = 1.0, 64 * 1024

# The extensions of a request: the address that is connected to instead of the host, and what is awaited once there is
# a connection, before anything is written.
ADDRESS, BEFORE_WRITING = "toolbelt_address", "toolbelt_before_writing"


class Transport(httpx2.AsyncBaseTransport):
    """Sends requests over connections that are kept open. Creating one reads certificates, which takes a moment."""

    def __init__(self, certificates: ssl.SSLContext | None = None) -> None:
        self._certificates = certificates or httpx2.create_ssl_context(trust_env=False)
        self._certificates.set_alpn_protocols(["http/1.1"])
        # The connections that wait for a request; those used last come last.
        self._idle: dict[Origin, list[Connection]] = {}
        self._open: set[Connection] = set()
        self._slots = asyncio.Semaphore(MAX_CONNECTIONS)
        self._tasks: set[asyncio.Task[None]] = set()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request and return its response, whose body is still to be read. Raise httpx2's errors."""
        about = request.extensions
        timeouts = about.get("timeout", {})
        if self._slots.locked():
            await _within(timeouts.get("pool"), self._slots.acquire(), httpx2.PoolTimeout)
        else:
            await self._slots.acquire()
        connection: Connection | None = None
        try:
            connection = await self._connected(_origin(request), timeouts.get("connect"))
            before: Callable[[], Awaitable[object]] | None = about.get(BEFORE_WRITING)
            if before is not None:
                await before()
            await connection.send(request, timeouts.get("write"))
            head = await connection.head(timeouts.get("read"))
        except BaseException:
            self._release(connection)
            raise
        return httpx2.Response(
            head.status_code,
            headers=head.headers.raw_items(),
            stream=_Body(self, connection, timeouts.get("read")),
            extensions={"http_version": b"HTTP/" + head.http_version, "reason_phrase": head.reason},
        )

    async def aclose(self) -> None:
        """Close all connections."""
        for task in self._tasks:
            task.cancel()
        for connection in [*self._open]:
            connection.close()
        self._idle.clear()

    async def _connected(self, origin: Origin, seconds: float | None) -> Connection:
        """Return an idle connection, or a new one."""
        idle = self._idle.get(origin, [])
        while idle:
            connection = idle.pop()
            if connection.is_usable():
                return connection
            connection.close()
        connecting = asyncio.get_running_loop().create_connection(
            functools.partial(Connection, origin, self._open),
            origin.address,
            origin.port,
            ssl=self._certificates if origin.is_encrypted else None,
            server_hostname=origin.host if origin.is_encrypted else None,
        )
        try:
            _, connection = await _within(seconds, connecting, httpx2.ConnectTimeout)
            return connection
        except OSError as error:
            raise httpx2.ConnectError(str(error)) from error

    def _release(self, connection: Connection | None) -> None:
        """Keep a connection for another request if its response was read to the end, or close it."""
        self._slots.release()
        if connection is None:
            return
        idle = self._idle.setdefault(connection.origin, [])
        while idle and idle[0].is_expired():
            idle.pop(0).close()
        if len(idle) < MAX_IDLE and connection.can_be_kept():
            idle.append(connection)
        else:
            connection.close()

    def release_unfinished(self, connection: Connection) -> None:
        """Release a connection whose response is not read any further, after reading its end if that is short."""
        if not connection.is_receiving or not connection.may_complete:
            self._release(connection)
            return
        task = asyncio.create_task(self._finish(connection))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _finish(self, connection: Connection) -> None:
        """Read the rest of a response, unless it is long."""
        try:
            size = 0
            async with asyncio.timeout(REST_SECONDS):
                while size <= MAX_REST_BYTES and (chunk := await connection.part(REST_SECONDS)) is not None:
                    size += len(chunk)
        except (TimeoutError, httpx2.TransportError):
            pass
        finally:
            self._release(connection)


class _Body(httpx2.AsyncByteStream):
    """The body of a response."""

    def __init__(self, transport: Transport, connection: Connection, seconds: float | None) -> None:
        self._transport, self._connection, self._seconds = transport, connection, seconds
        self._is_released = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            while (chunk := await self._connection.part(self._seconds)) is not None:
                yield chunk
        except (Exception, asyncio.CancelledError):
            # The server notices that a request is cancelled by the end of its connection.
            self._connection.may_complete = False
            raise
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        """Release the connection."""
        if not self._is_released:
            self._is_released = True
            self._transport.release_unfinished(self._connection)


def _origin(request: httpx2.Request) -> Origin:
    url = request.url
    is_encrypted = url.scheme == "https"
    address = request.extensions.get(ADDRESS, url.host)
    return Origin(address, url.port or (443 if is_encrypted else 80), url.host, is_encrypted)


async def _within(seconds: float | None, work: Awaitable[T], late: type[httpx2.TimeoutException]) -> T:
    """Return the result of the work. Raise ``late`` if it takes longer."""
    try:
        async with asyncio.timeout(seconds):
            return await work
    except TimeoutError as error:
        raise late("The server took too long.") from error
