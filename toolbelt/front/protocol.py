"""uvicorn's HTTP protocol, with a limit on the size of a request's head and on the time it takes to arrive.

``uvicorn toolbelt.asgi:application --http toolbelt.front.protocol:Protocol``. uvicorn's own waits for a head without
end and takes any number of headers. What comes after the head is limited by :mod:`toolbelt.front.gate`.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http import httptools_impl

HEAD_SECONDS = 15.0
HEAD_BYTES = 64 * 1024


class Protocol(httptools_impl.HttpToolsProtocol):
    """One connection."""

    head_seconds = HEAD_SECONDS
    head_bytes = HEAD_BYTES

    _timer: asyncio.TimerHandle | None = None
    _received = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first head."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._stop_waiting()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Wait for the head of another request; for the first, the time runs since the connection was made."""
        super().on_message_begin()
        if self._timer is None:
            self._wait()

    def on_headers_complete(self) -> None:
        """Go on as soon as the head is there."""
        self._stop_waiting()
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """Read, and end the connection where a head has become too large."""
        super().data_received(data)
        if self._timer is None:
            return
        self._received += len(data)
        if self._received > self.head_bytes:
            self._end(b"431 Request Header Fields Too Large")

    def _wait(self) -> None:
        self._received = 0
        self._timer = self.loop.call_later(self.head_seconds, self._end, b"408 Request Timeout")

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self, status: bytes) -> None:
        self._stop_waiting()
        if self.transport.is_closing():
            return
        # With an answer still on its way, this would stand in the middle of it.
        cycle: httptools_impl.RequestResponseCycle | None = self.cycle
        if cycle is None or cycle.response_complete:
            self.transport.write(
                b"HTTP/1.1 " + status + b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            )
        self.transport.close()
