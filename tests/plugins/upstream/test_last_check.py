"""Tests that the permission for a call is checked at the moment at which its request is written."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import httpx2
import pytest

from tests.plugins.upstream import harness, scripting, serving
from toolbelt.core import connections
from toolbelt.plugins.upstream import connection, last_check, transports


class Denied(Exception):
    """Raised by the checks of these tests."""


async def deny() -> None:
    raise Denied


async def allow() -> None:
    return


def server_at(**options: Any) -> connection.Server:
    settings = connections.of(options)
    assert settings is not None
    return connection.Server(settings, environ={})


def test_a_request_that_is_sent_again_is_checked_again() -> None:
    made: list[int] = []

    async def check() -> None:
        made.append(len(made))
        if len(made) > 1:
            raise Denied

    async def story() -> None:
        last = last_check.LastCheck(check)
        await last.make()
        await last.make()
        last.again()
        with pytest.raises(Denied):
            await last.make()

    asyncio.run(story())
    assert made == [0, 1]


def test_a_denied_call_is_not_sent_over_http_and_keeps_the_connection_open() -> None:
    async def story(server: connection.Server) -> tuple[int, int]:
        try:
            async with asyncio.timeout(30):
                await harness.call(server, "add", {"one": 1, "other": 2}, check=allow)
                before = len(serving.received_methods)
                with pytest.raises(Denied):
                    await harness.call(server, "add", {"one": 1, "other": 2}, check=deny)
                between = len(serving.received_methods)
                assert server.status().state == "open"
                await harness.call(server, "add", {"one": 1, "other": 2}, check=allow)
                return between - before, len(serving.received_methods) - between
        finally:
            await server.close()

    with serving.served() as url:
        headers = {"Authorization": f"Bearer {serving.TOKEN}"}
        sent_denied, sent_allowed = asyncio.run(story(server_at(url=url, headers=headers)))

    assert sent_denied == 0
    assert sent_allowed == 1


def test_a_denied_call_is_not_written_to_a_process(tmp_path: Any) -> None:
    script = scripting.Script(tmp_path)

    async def story(server: connection.Server) -> None:
        try:
            async with asyncio.timeout(30):
                await harness.call(server, "echo", {}, check=allow)
                with pytest.raises(Denied):
                    await harness.call(server, "echo", {}, check=deny)
        finally:
            await server.close()

    asyncio.run(story(server_at(**script.connection)))

    assert script.calls == 1


def test_a_request_waiting_for_a_connection_is_checked_when_it_gets_the_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transports, "MAX_CONNECTIONS", 1)
    checked: list[str] = []

    async def story() -> None:
        release = asyncio.Event()

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.closing(writer), contextlib.suppress(asyncio.IncompleteReadError):
                await reader.readuntil(b"\r\n\r\n")
                await release.wait()
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                await writer.drain()

        async def resolve(host: str, port: int) -> list[str]:
            return ["127.0.0.1"]

        async def get(name: str) -> int:
            async def check() -> None:
                checked.append(name)
                if name == "second":
                    raise Denied

            last_check.CURRENT.set(last_check.LastCheck(check))
            return (await client.get(f"http://localhost:{port}/")).status_code

        served = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = served.sockets[0].getsockname()[1]
        inner = transports.pool()
        async with (
            asyncio.timeout(30),
            served,
            httpx2.AsyncClient(transport=transports.UpstreamTransport(inner, resolve=resolve)) as client,
        ):
            first = asyncio.create_task(get("first"))
            while checked != ["first"]:  # noqa: ASYNC110 (the check is made by the client)
                await asyncio.sleep(0.01)
            second = asyncio.create_task(get("second"))
            await asyncio.sleep(0.1)
            assert checked == ["first"]
            release.set()
            assert await first == 200
            # Only this request gets an error, and nothing of it was sent.
            assert await second == 403
        assert checked == ["first", "second"]

    asyncio.run(story())
