"""Tests how uvicorn's protocol gathers writes, and what it accepts besides a body. (With a server: test_server.py)"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from toolbelt.front import protocol


class RecordingTransport:
    """A transport that records what is sent in each system call."""

    def __init__(self) -> None:
        self.calls: list[bytes] = []
        self.is_closed = False

    def writelines(self, parts: list[bytes]) -> None:
        self.calls.append(b"".join(parts))

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    def get_extra_info(self, name: str) -> str:
        return f"its {name}"


def write_parts(*parts: bytes, ending: str = "") -> RecordingTransport:
    """Write these parts in one turn of the event loop, and return what is sent until the next but one."""

    async def write() -> RecordingTransport:
        sent = RecordingTransport()
        transport = protocol.GatheringTransport(sent, asyncio.get_running_loop())  # type: ignore[arg-type]
        for part in parts:
            transport.write(part)
        if ending == "closed here":
            transport.close()
        elif ending == "closed by the client":
            sent.close()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return sent

    return asyncio.run(write())


def test_a_head_and_its_body_are_sent_in_one_call() -> None:
    assert write_parts(b"head", b"body").calls == [b"headbody"]


def test_a_large_body_is_sent_immediately() -> None:
    large = b"x" * protocol.MAX_HELD_BYTES

    async def write() -> list[bytes]:
        sent = RecordingTransport()
        transport = protocol.GatheringTransport(sent, asyncio.get_running_loop())  # type: ignore[arg-type]
        transport.write(b"head")
        transport.write(large)
        return sent.calls

    assert asyncio.run(write()) == [b"head" + large]


def test_held_data_is_sent_before_the_connection_is_closed() -> None:
    sent = write_parts(b"last words", ending="closed here")
    assert sent.calls == [b"last words"]
    assert sent.is_closed


def test_nothing_is_sent_to_a_disconnected_client() -> None:
    assert write_parts(b"too late", ending="closed by the client").calls == []


def test_other_methods_are_delegated_to_the_transport() -> None:
    async def ask() -> object:
        loop = asyncio.get_running_loop()
        return protocol.GatheringTransport(RecordingTransport(), loop).get_extra_info("peername")  # type: ignore[arg-type]

    assert asyncio.run(ask()) == "its peername"


def test_the_protocol_can_be_imported_before_django_is_set_up() -> None:
    imported = "import sys, toolbelt.front.protocol; sys.exit('django.conf' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", imported], check=False).returncode == 0


HEAD = b"POST /x HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
# All limits are the real ones; the reads are as large as those of uvloop.
READ_BYTES = 256 * 1024


class Connection(asyncio.Transport):
    """The connection of a client; ``sent`` is what the server wrote."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.is_closed = False

    def write(self, data: Any) -> None:
        self.sent += bytes(data)

    def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    @property
    def statuses(self) -> list[bytes]:
        return [part[:3] for part in self.sent.split(b"HTTP/1.1 ")[1:]]


def serve(reads: Iterable[bytes]) -> tuple[Connection, list[Any]]:
    """Serve a client that sends these reads. Return its connection, and the headers and body of each request."""
    seen: list[Any] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        body = b""
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message["body"]
            if not message["more_body"]:
                break
        seen.append((dict(scope["headers"]), body))
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def main() -> Connection:
        config = uvicorn.Config(application, log_level="critical", lifespan="off")
        served = protocol.Protocol(config, ServerState(), {}, asyncio.get_running_loop())
        connection = Connection()
        served.connection_made(connection)
        for read in reads:
            if connection.is_closed:
                break
            served.data_received(read)
            for _ in range(8):
                await asyncio.sleep(0)
        served.connection_lost(None)
        await asyncio.sleep(0)
        return connection

    return asyncio.run(main()), seen


def in_reads(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


@pytest.mark.parametrize("size", [7, READ_BYTES])
def test_trailers_are_not_headers(size: int) -> None:
    sent = CHUNKED + b"2\r\n{}\r\n0\r\nAuthorization: Bearer tb_x\r\nCookie: a=b\r\n\r\n"
    connection, ((headers, body),) = serve(in_reads(sent, size))
    assert connection.statuses == [b"204"]
    assert headers.keys() == {b"host", b"transfer-encoding"}
    assert body == b"{}"


ENDLESS = {
    "trailers": CHUNKED + b"1\r\nx\r\n0\r\n" + b"a: b\r\n" * 1_000_000,
    "one trailer": CHUNKED + b"1\r\nx\r\n0\r\na: " + b"x" * 5_000_000,
    "the name of a trailer": CHUNKED + b"1\r\nx\r\n0\r\n" + b"x" * 5_000_000,
    "an extension of a chunk": CHUNKED + b"1;" + b"x" * 5_000_000,
    "chunks of one byte": CHUNKED + b"1;abcdefgh\r\nx\r\n" * 500_000,
    "headers": HEAD + b"a: b\r\n" * 1_000_000,
    "one header": HEAD + b"a: " + b"x" * 5_000_000,
    "an address": b"GET /" + b"x" * 5_000_000,
    "empty lines": b"\r\n" * 2_000_000,
}


@pytest.mark.parametrize("size", [1_000, READ_BYTES])
@pytest.mark.parametrize("part", ENDLESS)
def test_what_is_not_body_is_read_up_to_a_limit(part: str, size: int) -> None:
    connection, seen = serve(in_reads(ENDLESS[part], size))
    assert connection.is_closed
    assert connection.statuses in ([b"431"], [b"400"])
    assert seen == []


def header(size: int) -> bytes:
    return b"a: " + b"x" * size + b"\r\n"


@pytest.mark.parametrize("size", [1_000, READ_BYTES])
@pytest.mark.parametrize("before", [b"", b"GET /y HTTP/1.1\r\nHost: localhost\r\n\r\n"])
def test_a_head_over_the_limit_is_refused_however_it_arrives(before: bytes, size: int) -> None:
    head = HEAD + header(protocol.HEAD_BYTES + protocol.PIECE_BYTES) + b"\r\n"
    reads = [*([before] if before else []), *in_reads(head, size)]
    connection, seen = serve(reads)
    assert connection.is_closed
    assert connection.statuses == [*([b"204"] if before else []), b"431"]
    assert len(seen) == (1 if before else 0)


@pytest.mark.parametrize("size", [1_000, READ_BYTES])
def test_a_head_within_the_limit_is_accepted_before_a_large_body(size: int) -> None:
    sent = HEAD + header(60_000) + b"Content-Length: 900000\r\n\r\n" + b"x" * 900_000
    connection, ((headers, body),) = serve(in_reads(sent, size))
    assert connection.statuses == [b"204"]
    assert (len(headers[b"a"]), len(body)) == (60_000, 900_000)


def test_a_body_in_small_chunks_is_accepted() -> None:
    sent = CHUNKED + b"64\r\n" + b"\r\n64\r\n".join([b"x" * 100] * 5_000) + b"\r\n0\r\n\r\n"
    connection, ((_, body),) = serve(in_reads(sent, READ_BYTES))
    assert connection.statuses == [b"204"]
    assert len(body) == 500_000


def test_requests_on_one_connection_are_counted_apart() -> None:
    sent = HEAD + header(40_000) + b"Content-Length: 2\r\n\r\n{}"
    connection, seen = serve([sent, sent, sent])
    assert connection.statuses == [b"204"] * 3
    assert len(seen) == 3
