"""The network of the HTTP client, on asyncio's transports: faster than anyio's, with one system call for a request.

The client writes a request's head and body separately. They are sent together when the client waits for the answer.
"""

from __future__ import annotations

import asyncio
import select
import ssl
from collections.abc import Iterable
from typing import Any

import httpcore2
import httpx2

# How much is received before the client reads it, and how much is held back before it is sent.
MAX_UNREAD_BYTES, MAX_HELD_BYTES = 256 * 1024, 64 * 1024


class Transport(httpx2.AsyncHTTPTransport):
    """The HTTP client's own transport, over this network. Creating one reads certificates, which takes a moment."""

    def __init__(self) -> None:
        limits = httpx2.Limits(max_connections=100, max_keepalive_connections=20)
        # Not by the parent's constructor, which takes no network.
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=httpx2.create_ssl_context(trust_env=False),
            max_connections=limits.max_connections,
            max_keepalive_connections=limits.max_keepalive_connections,
            keepalive_expiry=limits.keepalive_expiry,
            network_backend=Backend(),
        )


class Backend(httpcore2.AsyncNetworkBackend):
    """Opens connections on the running event loop."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 (httpcore's)
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to an address. Raise ConnectError or ConnectTimeout."""
        local = (local_address, 0) if local_address is not None else None
        try:
            async with asyncio.timeout(timeout):
                loop = asyncio.get_running_loop()
                _, stream = await loop.create_connection(Stream, host, port, local_addr=local)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout from error
        except OSError as error:
            raise httpcore2.ConnectError(str(error)) from error
        for option in socket_options or ():
            stream.socket.setsockopt(*option)
        return stream

    async def sleep(self, seconds: float) -> None:
        """Pause before another attempt."""
        await asyncio.sleep(seconds)


class Stream(asyncio.Protocol, httpcore2.AsyncNetworkStream):
    """One connection."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._received = bytearray()
        self._held: list[bytes] = []
        self._is_over = self._is_paused = False
        self._error: Exception | None = None
        # What waits to read, and to write.
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None
        self._poll = select.poll()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        self._transport: Any = transport
        self.socket = transport.get_extra_info("socket")
        self._poll.register(self.socket.fileno(), select.POLLIN)

    def data_received(self, data: bytes) -> None:
        """Buffer received data."""
        self._received += data
        if len(self._received) > MAX_UNREAD_BYTES and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()
        _wake(self._reader)

    def eof_received(self) -> None:
        """Note the end of the data; the transport then closes."""
        self._is_over = True
        _wake(self._reader)

    def connection_lost(self, error: Exception | None) -> None:
        """Wake what waits to read or to write."""
        self._is_over, self._error = True, error
        _wake(self._reader)
        _wake(self._writer)

    def pause_writing(self) -> None:
        """Make writers wait."""
        self._writer = self._loop.create_future()

    def resume_writing(self) -> None:
        """Wake the waiting writer."""
        _wake(self._writer)
        self._writer = None

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        """Send what is held, and return received data; nothing if the connection is closed."""
        if self._held:
            self._send()
        if not self._received and not self._is_over:
            self._reader = self._loop.create_future()
            try:
                async with asyncio.timeout(timeout):
                    await self._reader
            except TimeoutError as error:
                raise httpcore2.ReadTimeout from error
            finally:
                self._reader = None
        if not self._received and self._error is not None:
            raise httpcore2.ReadError(str(self._error)) from self._error
        data = bytes(self._received[:max_bytes])
        del self._received[:max_bytes]
        if self._is_paused and len(self._received) <= MAX_UNREAD_BYTES:
            self._is_paused = False
            self._transport.resume_reading()
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Hold data until the client reads; send it immediately if it is much."""
        self._held.append(buffer)
        if sum(map(len, self._held)) <= MAX_HELD_BYTES:
            return
        self._send()
        if self._writer is not None:
            try:
                async with asyncio.timeout(timeout):
                    await asyncio.shield(self._writer)
            except TimeoutError as error:
                raise httpcore2.WriteTimeout from error
        if self._is_over and self._error is not None:
            raise httpcore2.WriteError(str(self._error)) from self._error

    async def aclose(self) -> None:
        """Close the connection. What is held, or waits for a server that does not read, is not sent."""
        self._held.clear()
        if self._transport.get_write_buffer_size():
            self._transport.abort()
        else:
            self._transport.close()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> httpcore2.AsyncNetworkStream:
        """Encrypt from here on. Raise ConnectError or ConnectTimeout."""
        if self._received:
            # Anyone on the way could have sent it, and it would be read as if the server had sent it encrypted.
            await self.aclose()
            raise httpcore2.ConnectError("The server sent data before the connection was encrypted.")
        try:
            async with asyncio.timeout(timeout):
                self._transport = await self._loop.start_tls(
                    self._transport, self, ssl_context, server_hostname=server_hostname
                )
        except TimeoutError as error:
            await self.aclose()
            raise httpcore2.ConnectTimeout from error
        except OSError as error:
            await self.aclose()
            raise httpcore2.ConnectError(str(error)) from error
        return self

    def get_extra_info(self, info: str) -> Any:
        """Return information about the connection."""
        match info:
            case "is_readable":
                # Of a connection that is not in use: whether it cannot be used again, because its server has closed it
                # or sent what no request asked for.
                if self._is_over or self._received or self._transport.is_closing():
                    return True
                return bool(self._poll.poll(0))
            case "client_addr":
                return self._transport.get_extra_info("sockname")
            case "server_addr":
                return self._transport.get_extra_info("peername")
        return self._transport.get_extra_info(info)

    def _send(self) -> None:
        data, self._held = b"".join(self._held), []
        # If the server has closed the connection, its answer may still be unread.
        if data and not self._transport.is_closing():
            self._transport.write(data)


def _wake(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
