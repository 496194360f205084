"""Tests of the HTTP client's network: what it sends at once, what it reads, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvloop

from toolbelt.plugins.upstream import http_connection, network

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Run = Callable[[Coroutine[Any, Any, Any]], Any]


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    """Run on Python's own event loop, and on that of servers."""
    with asyncio.Runner(loop_factory=request.param) as runner:
        yield runner.run


@contextlib.asynccontextmanager
async def served(answer: Answer, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Serve every connection so, and yield the port."""
    opened: list[asyncio.StreamWriter] = []

    async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened.append(writer)
        await answer(reader, writer)

    server = await asyncio.start_server(answered, "127.0.0.1", 0, ssl=tls)
    async with asyncio.timeout(30), server:
        yield server.sockets[0].getsockname()[1]
        for writer in opened:
            writer.close()
        await asyncio.sleep(0.01)


async def request_of(reader: asyncio.StreamReader) -> bytes:
    """Return the body of a request that comes."""
    head = await reader.readuntil(b"\r\n\r\n")
    _, _, length = head.lower().partition(b"content-length: ")
    return await reader.readexactly(int(length.partition(b"\r\n")[0] or 0))


def answer(writer: asyncio.StreamWriter, body: bytes) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(asyncio.IncompleteReadError):
        while True:
            answer(writer, await request_of(reader))
            await writer.drain()
    writer.close()


class Sent:
    """A transport that keeps what is sent in each system call."""

    def __init__(self) -> None:
        self.calls: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.calls.append(data)

    def is_closing(self) -> bool:
        return False

    def get_extra_info(self, name: str) -> Any:
        return self

    def fileno(self) -> int:
        return 0


def test_a_request_is_sent_in_one_system_call(run: Run) -> None:
    async def story() -> list[bytes]:
        origin = http_connection.Origin("127.0.0.1", 80, "tools.test", False)
        connection, sent = http_connection.Connection(origin, set()), Sent()
        connection.connection_made(sent)  # type: ignore[arg-type]
        await connection.send(httpx2.Request("POST", "http://tools.test/mcp", content=b"body"), 1)
        return sent.calls

    (call,) = run(story())
    assert call.startswith(b"POST /mcp HTTP/1.1\r\n")
    assert call.endswith(b"\r\n\r\nbody")


@pytest.mark.parametrize(
    "size", [0, 10, 2 * http_connection.MAX_UNREAD_BYTES, 40 * http_connection.MAX_UNREAD_BYTES]
)
def test_requests_and_answers_of_any_size_arrive_whole(size: int, run: Run) -> None:
    async def story() -> None:
        body = bytes(index % 251 for index in range(1000)) * (size // 1000) + b"x" * (size % 1000)
        async with served(echo) as port, httpx2.AsyncClient(transport=network.Transport()) as client:
            for _ in range(2):
                answered = await client.post(f"http://127.0.0.1:{port}/", content=body)
                assert answered.content == body

    run(story())


def test_a_connection_that_the_server_has_closed_is_not_used_again(run: Run) -> None:
    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answer(writer, await request_of(reader))
        writer.close()

    async def story() -> None:
        async with served(once) as port, httpx2.AsyncClient(transport=network.Transport()) as client:
            for _ in range(5):
                assert (await client.post(f"http://127.0.0.1:{port}/", content=b"again")).text == "again"
                await asyncio.sleep(0.01)

    run(story())


def test_a_connection_with_an_answer_that_nobody_asked_for_is_not_used_again(run: Run) -> None:
    async def twice(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                body = await request_of(reader)
                answer(writer, body)
                await asyncio.sleep(0.01)
                answer(writer, b"unasked")

    async def story() -> None:
        async with served(twice) as port, httpx2.AsyncClient(transport=network.Transport()) as client:
            for body in (b"first", b"second"):
                assert (await client.post(f"http://127.0.0.1:{port}/", content=body)).content == body
                await asyncio.sleep(0.05)

    run(story())


def test_a_connection_to_a_server_that_does_not_read_is_closed_at_once(run: Run) -> None:
    request = b"x" * (64 << 20)

    async def story() -> int:
        received: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        given_up = asyncio.Event()

        async def ignore(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            await given_up.wait()
            writer.transport.resume_reading()  # type: ignore[attr-defined]
            size = 0
            with contextlib.suppress(ConnectionResetError):
                while part := await reader.read(1 << 20):
                    size += len(part)
            received.set_result(size)

        async with served(ignore) as port:
            async with httpx2.AsyncClient(transport=network.Transport(), timeout=0.2) as client:
                with pytest.raises(httpx2.WriteTimeout):
                    await client.post(f"http://127.0.0.1:{port}/", content=request)
            given_up.set()
            return await received

    assert run(story()) < len(request)


def test_an_answer_is_read_that_came_before_the_request_was_sent_whole(run: Run) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno")
        writer.write_eof()
        # Reset, a client may never read it.
        await reader.read()
        writer.close()

    async def story() -> int:
        body = b"x" * http_connection.MAX_UNREAD_BYTES
        async with served(refuse) as port, httpx2.AsyncClient(transport=network.Transport()) as client:
            return (await client.post(f"http://127.0.0.1:{port}/", content=body)).status_code

    assert run(story()) == 413


def test_each_failure_is_raised_as_the_http_client_knows_it(run: Run) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await request_of(reader) == b"hang up":
            writer.close()

    async def story() -> None:
        async with httpx2.AsyncClient(transport=network.Transport(), timeout=0.2) as client:
            async with served(hang_up) as port:
                with pytest.raises(httpx2.RemoteProtocolError):
                    await client.post(f"http://127.0.0.1:{port}/", content=b"hang up")
                with pytest.raises(httpx2.ReadTimeout):
                    await client.post(f"http://127.0.0.1:{port}/", content=b"be silent")
            with pytest.raises(httpx2.ConnectError):
                await client.post(f"http://127.0.0.1:{port}/", content=b"gone")

    run(story())


def test_data_that_comes_before_the_connection_is_encrypted_is_not_read(run: Run) -> None:
    async def inject(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answer(writer, b"injected")

    async def story() -> None:
        async with served(inject) as port, httpx2.AsyncClient(transport=network.Transport()) as client:
            with pytest.raises(httpx2.ConnectError):
                await client.post(f"https://127.0.0.1:{port}/", content=b"secret")

    run(story())


def test_a_connection_is_encrypted_and_its_certificate_checked(tmp_path: Path, run: Run) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-subj",
        "/CN=localhost",
        "-days",
        "1",
    ]
    named = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*made, *named], check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)

    async def story() -> None:
        async with served(echo, tls) as port:
            async with httpx2.AsyncClient(transport=network.Transport()) as client:
                with pytest.raises(httpx2.ConnectError, match="certificate"):
                    await client.post(f"https://127.0.0.1:{port}/", content=b"secret")
            transport = network.Transport(ssl.create_default_context(cafile=str(certificate)))
            about = {network.ADDRESS: "127.0.0.1"}
            async with httpx2.AsyncClient(transport=transport) as client:
                for body in (b"secret", b"x" * 4 * http_connection.MAX_UNREAD_BYTES):
                    answered = await client.post(f"https://localhost:{port}/", content=body, extensions=about)
                    assert answered.content == body

    run(story())


def test_the_connection_of_a_response_that_is_not_read_to_its_end_is_used_again(run: Run) -> None:
    opened: list[asyncio.StreamWriter] = []

    async def in_events(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """End each stream a moment after its last event, as servers do."""
        opened.append(writer)
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                await request_of(reader)
                writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n6\r\nevent\n\r\n")
                await asyncio.sleep(0.02)
                writer.write(b"0\r\n\r\n")

    async def story() -> None:
        async with served(in_events) as port, httpx2.AsyncClient(transport=network.Transport()) as client:
            for _ in range(3):
                async with client.stream("POST", f"http://127.0.0.1:{port}/", content=b"x") as response:
                    assert await anext(response.aiter_raw()) == b"event\n"
                await asyncio.sleep(0.2)

    run(story())

    assert len(opened) == 1


def test_the_server_notices_that_a_request_is_cancelled(run: Run) -> None:
    async def story() -> None:
        called, hung_up = asyncio.Event(), asyncio.Event()

        async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await request_of(reader)
            writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
            called.set()
            assert await reader.read() == b""
            hung_up.set()

        async with served(endless) as port, httpx2.AsyncClient(transport=network.Transport()) as client:
            asking = asyncio.create_task(client.post(f"http://127.0.0.1:{port}/", content=b"x"))
            await called.wait()
            await asyncio.sleep(0.05)
            asking.cancel()
            await asyncio.wait({asking})
            async with asyncio.timeout(network.REST_SECONDS / 2):
                await hung_up.wait()

    run(story())


@pytest.mark.parametrize("begun", [False, True], ids=["before its answer", "within its answer"])
def test_a_late_answer_to_a_cancelled_request_reaches_no_other_request(begun: bool, run: Run) -> None:
    async def story() -> None:
        called = asyncio.Event()

        async def late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                while True:
                    body = await request_of(reader)
                    head = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n"
                    writer.write(head if begun else b"")
                    called.set()
                    if body == b"cancel":
                        await asyncio.sleep(0.1)
                    writer.write(body if begun else head + body)

        async with served(late) as port, httpx2.AsyncClient(transport=network.Transport()) as client:
            url = f"http://127.0.0.1:{port}/"
            cancelled = asyncio.create_task(client.post(url, content=b"cancel"))
            await called.wait()
            await asyncio.sleep(0.03)
            cancelled.cancel()
            await asyncio.wait({cancelled})
            for wait in (0, 0.15):
                await asyncio.sleep(wait)
                assert (await client.post(url, content=b"others")).content == b"others"

    run(story())


def test_a_request_waits_while_all_connections_are_in_use(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "MAX_CONNECTIONS", 1)

    async def story() -> None:
        let_go = asyncio.Event()
        answered: list[bytes] = []

        async def when_told(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(asyncio.IncompleteReadError):
                while True:
                    answered.append(await request_of(reader))
                    await let_go.wait()
                    answer(writer, answered[-1])

        transport = network.Transport()
        async with served(when_told) as port, httpx2.AsyncClient(transport=transport, timeout=0.2) as client:
            url = f"http://127.0.0.1:{port}/"
            first = asyncio.create_task(client.post(url, content=b"first", timeout=5))
            while not answered:  # noqa: ASYNC110 (the server notes it)
                await asyncio.sleep(0.01)
            with pytest.raises(httpx2.PoolTimeout):
                await client.post(url, content=b"second")
            let_go.set()
            assert (await first).content == b"first"
            assert (await client.post(url, content=b"third")).content == b"third"
        assert answered == [b"first", b"third"]

    run(story())
