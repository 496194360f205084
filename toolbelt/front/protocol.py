"""uvicorn's HTTP protocol, with limits on everything of a request that is not its body, and on the time of its head.

``uvicorn toolbelt.asgi:application --http toolbelt.front.protocol:Protocol``. uvicorn's own protocol waits for a head
indefinitely, accepts any number of headers, and takes the trailers after a chunked body for headers.
:mod:`toolbelt.front.request_limits` limits the body.

A response's head and body are sent in one system call. uvicorn makes a call for each, and with small responses, these
calls take a fifth of a server's CPU time.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http import httptools_impl

HEAD_SECONDS = 15.0
HEAD_BYTES = 64 * 1024
# How exactly the end of a head is found in a large read.
PIECE_BYTES = 1024
# Writes are buffered until the event loop's next iteration, up to this size.
MAX_HELD_BYTES = 16 * 1024


class GatheringTransport:
    """A transport that combines all writes within one iteration of the event loop."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._chunks: list[bytes] = []
        self._size = 0

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the wrapped transport."""
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Buffer the data, or write immediately if there is much, so that the transport can apply back pressure."""
        if not self._chunks:
            self._loop.call_soon(self._flush)
        self._chunks.append(data)
        self._size += len(data)
        if self._size > MAX_HELD_BYTES:
            self._flush()

    def close(self) -> None:
        """Write the buffered data, and close the connection."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        chunks, self._chunks, self._size = self._chunks, [], 0
        # The client may have gone away since.
        if chunks and not self._transport.is_closing():
            self._transport.writelines(chunks)


class Protocol(httptools_impl.HttpToolsProtocol):
    """A connection."""

    head_seconds = HEAD_SECONDS
    head_bytes = HEAD_BYTES

    _timer: asyncio.TimerHandle | None = None
    # The bytes of the current message: its body, and everything else (head, chunk sizes and extensions, trailers).
    _body = 0
    _other = 0
    _is_in_head = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer for the first head."""
        super().connection_made(GatheringTransport(transport, self.loop))  # type: ignore[arg-type]
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self._stop_waiting()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Start the timer for another head; for the first, it has been running since the connection was made."""
        super().on_message_begin()
        self._is_in_head = True
        if self._timer is None:
            self._wait()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a field of the head, and ignore trailers: nothing that follows a body may change what it means."""
        if self._is_in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Stop the timer when the head is complete."""
        self._is_in_head = False
        self._stop_waiting()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Count the body."""
        self._body += len(body)
        self._other -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Count from zero for the next message."""
        self._body = self._other = 0
        super().on_message_complete()

    def data_received(self, data: bytes) -> None:
        """Parse the data, and close the connection if there is too much that is not body."""
        # In small pieces if a head may end beyond its limit, because the parser does not say where it ends.
        size = len(data) if self._other + len(data) <= self.head_bytes else PIECE_BYTES
        for start in range(0, len(data), size):
            piece = data[start : start + size]
            self._other += len(piece)
            super().data_received(piece)
            if self.transport.is_closing():
                return
            # A body in small chunks has as much around it as in it.
            if self._other > self.head_bytes + self._body:
                self._end(b"431 Request Header Fields Too Large")
                return

    def _wait(self) -> None:
        self._timer = self.loop.call_later(self.head_seconds, self._end, b"408 Request Timeout")

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self, status: bytes) -> None:
        self._stop_waiting()
        if self.transport.is_closing():
            return
        # While a response is being sent or awaited, this would end up in the middle of it, or in its place.
        cycle: httptools_impl.RequestResponseCycle | None = self.cycle
        is_its_own = not (self._is_in_head or self.pipeline)
        if cycle is None or cycle.response_complete or (is_its_own and not cycle.response_started):
            self.transport.write(
                b"HTTP/1.1 " + status + b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            )
        self.transport.close()
