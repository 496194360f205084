"""One connection of HTTP/1.1, by h11 on asyncio's transports. A request is sent in one system call."""

from __future__ import annotations

import asyncio
import select
import time
from typing import Any, NamedTuple

import h11
import httpx2

# How long a connection waits for another request. Many servers close theirs after 5 seconds, and a request that is sent
# as they do is lost.
IDLE_SECONDS = 4.0
# How much is received before the client reads it, and the maximum size of a response's head.
MAX_UNREAD_BYTES, MAX_HEAD_BYTES = 256 * 1024, 100 * 1024


class Origin(NamedTuple):
    """The target of a connection: an address, and the host name for the server."""

    address: str
    port: int
    host: str
    is_encrypted: bool


class Connection(asyncio.Protocol):
    """One connection, for one request after another. It is among ``open_ones`` until it is closed."""

    def __init__(self, origin: Origin, open_ones: set[Connection]) -> None:
        self.origin, self._open_ones = origin, open_ones
        self._loop = asyncio.get_running_loop()
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)
        self._received = bytearray()
        self._is_over = self._is_reading_paused = self._is_writing_paused = False
        self._error: Exception | None = None
        # What waits to read or to write.
        self._waiter: asyncio.Future[None] | None = None
        self._poll = select.poll()
        self._idle_since = 0.0
        # Whether the rest of a response that the client does not read may be waited for.
        self.may_complete = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        self._transport: Any = transport
        self._open_ones.add(self)
        self._poll.register(transport.get_extra_info("socket").fileno(), select.POLLIN)

    def data_received(self, data: bytes) -> None:
        """Buffer received data."""
        self._received += data
        if len(self._received) > MAX_UNREAD_BYTES and not self._is_reading_paused:
            self._is_reading_paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        """Note the end of the data; the transport then closes."""
        self._is_over = True
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        """Wake what waits to read or to write."""
        self._is_over, self._error, self._is_writing_paused = True, error, False
        self._wake()
        self._open_ones.discard(self)

    def pause_writing(self) -> None:
        """Make writers wait."""
        self._is_writing_paused = True

    def resume_writing(self) -> None:
        """Wake what waits to write."""
        self._is_writing_paused = False
        self._wake()

    async def send(self, request: httpx2.Request, seconds: float | None) -> None:
        """Send a request."""
        body = await request.aread()
        try:
            head = h11.Request(
                method=request.method, target=request.url.raw_path, headers=request.headers.raw
            )
            data = [self._http.send(head), self._http.send(h11.Data(data=body)) if body else b""]
            data.append(self._http.send(h11.EndOfMessage()))
        except h11.LocalProtocolError as error:
            raise httpx2.LocalProtocolError(str(error)) from error
        self.may_complete = True
        # If the server has closed the connection, its answer may still be unread.
        if not self._transport.is_closing():
            self._transport.write(b"".join(part for part in data if part))
        while self._is_writing_paused and not self._is_over:
            await self._wait(seconds, httpx2.WriteTimeout)

    async def head(self, seconds: float | None) -> h11.Response:
        """Return the head of the response, after those that only announce it."""
        while not isinstance(event := await self._event(seconds), h11.Response):
            pass
        return event

    async def part(self, seconds: float | None) -> bytes | None:
        """Return the next part of the response's body; None at its end."""
        event = await self._event(seconds)
        return bytes(event.data) if isinstance(event, h11.Data) else None

    @property
    def is_receiving(self) -> bool:
        """Return whether the response was read in part."""
        return self._http.their_state is h11.SEND_BODY

    def can_be_kept(self) -> bool:
        """Prepare the connection for another request; return whether there may be one."""
        http = self._http
        if http.our_state is not h11.DONE or http.their_state is not h11.DONE or http.trailing_data[0]:
            return False
        self._http.start_next_cycle()
        self._idle_since = time.monotonic()
        return True

    def is_usable(self) -> bool:
        """Return whether another request can be sent: the server has neither closed the connection, nor sent what no
        request asked for.
        """
        if self._is_over or self._received or self._transport.is_closing() or self.is_expired():
            return False
        return not self._poll.poll(0)

    def is_expired(self) -> bool:
        """Return whether the connection was idle for too long."""
        return time.monotonic() - self._idle_since > IDLE_SECONDS

    def close(self) -> None:
        """Close the connection. What waits for a server that does not read is not sent."""
        if self not in self._open_ones:
            return
        if self._transport.get_write_buffer_size():
            self._transport.abort()
        else:
            self._transport.close()

    async def _event(self, seconds: float | None) -> Any:
        try:
            while (event := self._http.next_event()) is h11.NEED_DATA:
                while not self._received and not self._is_over:
                    await self._wait(seconds, httpx2.ReadTimeout)
                if not self._received and self._error is not None:
                    raise httpx2.ReadError(str(self._error)) from self._error
                if not self._received and self._http.their_state is h11.SEND_RESPONSE:
                    raise httpx2.RemoteProtocolError("Server disconnected without sending a response.")
                self._http.receive_data(bytes(self._received))
                self._received.clear()
                if self._is_reading_paused:
                    self._is_reading_paused = False
                    self._transport.resume_reading()
        except h11.RemoteProtocolError as error:
            raise httpx2.RemoteProtocolError(str(error)) from error
        return event

    async def _wait(self, seconds: float | None, late: type[httpx2.TimeoutException]) -> None:
        """Wait until something changes. Raise ``late`` if that takes longer."""
        waiter = self._waiter = self._loop.create_future()
        timer = self._loop.call_later(seconds, _fail, waiter, late) if seconds is not None else None
        try:
            await waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def _fail(waiter: asyncio.Future[None], late: type[httpx2.TimeoutException]) -> None:
    if not waiter.done():
        waiter.set_exception(late("The server took too long."))
