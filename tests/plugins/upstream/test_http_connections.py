"""Tests of the connections to servers over HTTP: what is sent and read, and how connections end."""

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

from toolbelt.plugins.upstream import bodies, transports

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Run = Callable[[Coroutine[Any, Any, Any]], Any]


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    """Run on Python's event loop and on uvloop, which servers use."""
    with asyncio.Runner(loop_factory=request.param) as runner:
        yield runner.run


@contextlib.asynccontextmanager
async def served(answer: Answer, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Answer every connection with ``answer``; yield the port."""
    opened: list[asyncio.StreamWriter] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened.append(writer)
        await answer(reader, writer)

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls)
    async with asyncio.timeout(30), server:
        yield server.sockets[0].getsockname()[1]
        for writer in opened:
            writer.close()
        await asyncio.sleep(0.01)


async def read_request(reader: asyncio.StreamReader) -> bytes:
    """Read a request and return its body."""
    head = await reader.readuntil(b"\r\n\r\n")
    _, _, length = head.lower().partition(b"content-length: ")
    return await reader.readexactly(int(length.partition(b"\r\n")[0] or 0))


def write_answer(writer: asyncio.StreamWriter, body: bytes) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(asyncio.IncompleteReadError):
        while True:
            write_answer(writer, await read_request(reader))
            await writer.drain()
    writer.close()


async def at_this_machine(host: str, port: int) -> list[str]:
    return ["127.0.0.1"]


def client_through_gate(certificates: ssl.SSLContext | None = None) -> httpx2.AsyncClient:
    transport = transports.UpstreamTransport(transports.pool(certificates), resolve=at_this_machine)
    return httpx2.AsyncClient(transport=transport)


@pytest.mark.parametrize("size", [0, 10, 500_000, 10_000_000])
def test_requests_and_responses_of_any_size_arrive_complete(size: int, run: Run) -> None:
    async def story() -> None:
        body = bytes(index % 251 for index in range(1000)) * (size // 1000) + b"x" * (size % 1000)
        async with served(echo) as port, httpx2.AsyncClient(transport=transports.pool()) as client:
            for _ in range(2):
                answered = await client.post(f"http://127.0.0.1:{port}/", content=body)
                assert answered.content == body

    run(story())


def test_a_connection_closed_by_the_server_is_not_reused(run: Run) -> None:
    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        write_answer(writer, await read_request(reader))
        writer.close()

    async def story() -> None:
        async with served(once) as port, httpx2.AsyncClient(transport=transports.pool()) as client:
            for _ in range(5):
                assert (await client.post(f"http://127.0.0.1:{port}/", content=b"again")).text == "again"
                await asyncio.sleep(0.01)

    run(story())


def test_a_redirected_request_gets_the_answer_whatever_id_it_has(run: Run) -> None:
    async def redirect_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 307 Moved\r\nlocation: /mcp/\r\ncontent-length: 0\r\n\r\n")
        await read_request(reader)
        write_answer(writer, b'{"jsonrpc":"2.0","id":"server-error","result":{}}')

    async def story() -> Any:
        async with served(redirect_once) as port, client_through_gate() as client:
            return await client.post(
                f"http://127.0.0.1:{port}/mcp", json={"id": 7, "method": "tools/list"}, follow_redirects=True
            )

    assert run(story()).json()["id"] == 7


@pytest.mark.parametrize("pause", [0, 0.01], ids=["in one piece", "later"])
def test_a_response_that_was_not_requested_answers_no_other_request(pause: float, run: Run) -> None:
    async def twice(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                write_answer(writer, await read_request(reader))
                await asyncio.sleep(pause)
                write_answer(writer, b"unasked")

    async def story() -> None:
        async with served(twice) as port, client_through_gate() as client:
            for body in (b"first", b"second"):
                try:
                    assert (await client.post(f"http://127.0.0.1:{port}/", content=body)).content == body
                except httpx2.RemoteProtocolError:
                    assert body == b"second"
                await asyncio.sleep(0.05)

    run(story())


def test_a_connection_to_a_server_that_does_not_read_is_closed_on_timeout(run: Run) -> None:
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
            async with httpx2.AsyncClient(transport=transports.pool(), timeout=0.2) as client:
                with pytest.raises(httpx2.WriteTimeout):
                    await client.post(f"http://127.0.0.1:{port}/", content=request)
            given_up.set()
            return await received

    assert run(story()) < len(request)


def test_a_response_that_arrives_before_the_request_is_complete_is_read(run: Run) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno")
        writer.write_eof()
        # After a reset, a client might never read the response.
        await reader.read()
        writer.close()

    async def story() -> int:
        body = b"x" * 256 * 1024
        async with served(refuse) as port, httpx2.AsyncClient(transport=transports.pool()) as client:
            return (await client.post(f"http://127.0.0.1:{port}/", content=body)).status_code

    assert run(story()) == 413


def test_each_failure_raises_the_http_clients_own_exception(run: Run) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await read_request(reader) == b"hang up":
            writer.close()

    async def story() -> None:
        async with httpx2.AsyncClient(transport=transports.pool(), timeout=0.2) as client:
            async with served(hang_up) as port:
                with pytest.raises(httpx2.RemoteProtocolError):
                    await client.post(f"http://127.0.0.1:{port}/", content=b"hang up")
                with pytest.raises(httpx2.ReadTimeout):
                    await client.post(f"http://127.0.0.1:{port}/", content=b"be silent")
            with pytest.raises(httpx2.ConnectError):
                await client.post(f"http://127.0.0.1:{port}/", content=b"gone")

    run(story())


def test_data_sent_before_the_connection_is_encrypted_is_not_read(run: Run) -> None:
    async def inject(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        write_answer(writer, b"injected")

    async def story() -> None:
        async with served(inject) as port, httpx2.AsyncClient(transport=transports.pool()) as client:
            with pytest.raises(httpx2.ConnectError):
                await client.post(f"https://127.0.0.1:{port}/", content=b"secret")

    run(story())


def test_tls_connections_verify_the_certificate(tmp_path: Path, run: Run) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = [
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
    options = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command, *options], check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)

    async def story() -> None:
        async with served(echo, tls) as port:
            async with httpx2.AsyncClient(transport=transports.pool()) as client:
                with pytest.raises(httpx2.ConnectError, match="certificate"):
                    await client.post(f"https://127.0.0.1:{port}/", content=b"secret")
            async with client_through_gate(ssl.create_default_context(cafile=str(certificate))) as client:
                for body in (b"secret", b"x" * 4 * 256 * 1024):
                    answered = await client.post(f"https://localhost:{port}/", content=body)
                    assert answered.content == body

    run(story())


def test_a_connection_is_reused_after_an_event_stream_is_left_before_its_end(run: Run) -> None:
    opened: list[asyncio.StreamWriter] = []

    async def in_events(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """End each stream a moment after its last event, as servers do."""
        opened.append(writer)
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                await read_request(reader)
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n")
                writer.write(b"transfer-encoding: chunked\r\n\r\n6\r\nevent\n\r\n")
                await asyncio.sleep(0.02)
                writer.write(b"0\r\n\r\n")

    async def story() -> None:
        async with served(in_events) as port, client_through_gate() as client:
            for _ in range(3):
                async with client.stream("POST", f"http://127.0.0.1:{port}/", content=b"x") as response:
                    assert await anext(response.aiter_raw()) == b"event\n"
                await asyncio.sleep(0.2)

    run(story())

    assert len(opened) == 1


def test_cancelling_a_request_closes_its_connection(run: Run) -> None:
    async def story() -> None:
        called, hung_up = asyncio.Event(), asyncio.Event()

        async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await read_request(reader)
            writer.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
            )
            called.set()
            assert await reader.read() == b""
            hung_up.set()

        async with served(endless) as port, client_through_gate() as client:
            request = asyncio.create_task(client.post(f"http://127.0.0.1:{port}/", content=b"x"))
            await called.wait()
            await asyncio.sleep(0.05)
            request.cancel()
            await asyncio.wait({request})
            async with asyncio.timeout(bodies.REST_SECONDS / 2):
                await hung_up.wait()

    run(story())


@pytest.mark.parametrize("is_started", [False, True], ids=["before the response", "during the response"])
def test_a_late_response_to_a_cancelled_request_reaches_no_other_request(is_started: bool, run: Run) -> None:
    async def story() -> None:
        called = asyncio.Event()

        async def late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                while True:
                    body = await read_request(reader)
                    head = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n"
                    writer.write(head if is_started else b"")
                    called.set()
                    if body == b"cancel":
                        await asyncio.sleep(0.1)
                    writer.write(body if is_started else head + body)

        async with served(late) as port, httpx2.AsyncClient(transport=transports.pool()) as client:
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
    monkeypatch.setattr(transports, "MAX_CONNECTIONS", 1)

    async def story() -> None:
        release = asyncio.Event()
        received: list[bytes] = []

        async def answer_when_released(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(asyncio.IncompleteReadError):
                while True:
                    received.append(await read_request(reader))
                    await release.wait()
                    write_answer(writer, received[-1])

        transport = transports.pool()
        async with (
            served(answer_when_released) as port,
            httpx2.AsyncClient(transport=transport, timeout=0.2) as client,
        ):
            url = f"http://127.0.0.1:{port}/"
            first = asyncio.create_task(client.post(url, content=b"first", timeout=5))
            while not received:  # noqa: ASYNC110 (the server records it)
                await asyncio.sleep(0.01)
            with pytest.raises(httpx2.PoolTimeout):
                await client.post(url, content=b"second")
            release.set()
            assert (await first).content == b"first"
            assert (await client.post(url, content=b"third")).content == b"third"
        assert received == [b"first", b"third"]

    run(story())
