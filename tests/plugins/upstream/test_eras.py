"""Tests of servers that do not bear to be asked for the stateless revision before they are initialized."""

from __future__ import annotations

import asyncio
import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.upstream import harness
from toolbelt.core import connections
from toolbelt.plugins.upstream import connection, eras, limits, live_connection

# Answers initialize, lists and calls; its second argument says what it does when it is probed.
PROGRAM = """
import json, os, sys, time
mark, probed = sys.argv[1:]
STATELESS = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
open(mark, "a").write("started\\n")
for line in sys.stdin:
    message = json.loads(line)
    method, answer = message.get("method"), None
    if method == "server/discover":
        open(mark, "a").write("probed\\n")
        if probed == "exits late":
            time.sleep(0.3)
        if probed.startswith("exits"):
            sys.exit("Error: expected initialize")
        if probed == "closes":
            os.close(1)
            time.sleep(60)
        if probed == "ignores":
            continue
        if probed == "nonsense":
            print("server/discover?", flush=True)
            continue
        if probed in ("late", "slow"):
            time.sleep(0.3)
            info = {"name": "new", "version": "1"}
            result = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "serverInfo": info}
            answer = {"result": {**result, **STATELESS}}
        elif probed == "half":
            answer = {"result": {}}
        else:
            answer = {"error": {"code": int(probed), "message": "no"}}
    elif method == "initialize" and probed == "late":
        answer = {"error": {"code": -32601, "message": "no"}}
    elif method == "initialize":
        info = {"name": "old", "version": "1"}
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
        answer = {"result": result}
    elif method == "tools/list":
        answer = {"result": {"tools": [{"name": "work", "inputSchema": {"type": "object"}}], **STATELESS}}
    elif method == "tools/call":
        answer = {"result": {"content": [{"type": "text", "text": str(os.getpid())}], **STATELESS}}
    if answer and "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""
PROBED = ["exits", "exits late", "closes", "ignores", "nonsense", "half", "-32602", "-32601", "-32000"]
BREAKING = ["exits", "exits late", "closes"]


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    eras._remembered.clear()


class Program:
    """The program of a test, and what it did."""

    def __init__(self, directory: Path, probed: str, **fields: Any) -> None:
        self._mark = directory / "mark"
        args = ["-c", PROGRAM, str(self._mark), probed]
        settings = connections.of({"command": sys.executable, "args": args, "timeout": 20, **fields})
        assert settings is not None
        self.settings = settings

    @property
    def events(self) -> list[str]:
        return self._mark.read_text().split()

    async def call(self, *, seconds: float = 0.2) -> Any:
        """Call the tool on a connection of its own, and return what it answers."""
        bounds = dataclasses.replace(limits.Limits(), probe=seconds)
        server = connection.Server(self.settings, environ={}, bounds=bounds)
        try:
            return await harness.call(server, "work", {})
        finally:
            await server.close()


@pytest.mark.parametrize("probed", PROBED)
def test_a_server_that_cannot_be_probed_is_initialized(tmp_path: Path, probed: str) -> None:
    program = Program(tmp_path, probed)
    assert asyncio.run(program.call())["content"]
    # On a new process only if the first one broke.
    assert program.events.count("started") == (2 if probed in BREAKING else 1)


@pytest.mark.parametrize("probed", [*BREAKING, "ignores"])
def test_it_is_not_probed_again_until_it_is_refreshed(tmp_path: Path, probed: str) -> None:
    program = Program(tmp_path, probed)

    async def story() -> None:
        await program.call()
        await program.call()
        assert program.events.count("probed") == 1
        bounds = dataclasses.replace(limits.Limits(), probe=0.2)
        server = connection.Server(program.settings, environ={}, bounds=bounds)
        try:
            assert [tool["name"] for tool in (await server.ask()).tools] == ["work"]
        finally:
            await server.close()

    asyncio.run(story())
    assert program.events.count("probed") == 2


def test_a_server_that_starts_slowly_is_probed_again(tmp_path: Path) -> None:
    program = Program(tmp_path, "slow")

    async def story() -> None:
        for _ in range(2):
            assert (await program.call(seconds=0.1))["content"]

    asyncio.run(story())
    assert (program.events.count("started"), program.events.count("probed")) == (2, 2)


def test_a_server_whose_revision_is_given_is_not_probed(tmp_path: Path) -> None:
    program = Program(tmp_path, "exits", revision="2025-11-25")
    assert asyncio.run(program.call())["content"]
    assert program.events == ["started"]


def test_a_server_that_does_not_speak_the_given_revision_is_unreachable(tmp_path: Path) -> None:
    for probed in ("exits", "-32601"):
        program = Program(tmp_path, probed, revision="2026-07-28")
        with pytest.raises(live_connection.UnreachableError):
            asyncio.run(program.call())


def test_a_named_revision_may_be_answered_later_than_a_probe(tmp_path: Path) -> None:
    program = Program(tmp_path, "late", revision="2026-07-28")
    assert asyncio.run(program.call(seconds=0.1))["content"]


def test_a_server_that_ends_in_any_case_is_started_twice_and_then_reported(tmp_path: Path) -> None:
    settings = connections.of({"command": sys.executable, "args": ["-c", "raise SystemExit('no config')"]})
    assert settings is not None

    async def story() -> None:
        server = connection.Server(settings, environ={})
        with pytest.raises(live_connection.UnreachableError, match="exit code 1"):
            await server.connected()
        await server.close()
        assert eras.beginning(settings) == "probed"

    asyncio.run(story())


def test_a_server_over_http_that_closes_the_connection_is_initialized() -> None:
    async def story() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await answer(reader, writer)

        served = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{served.sockets[0].getsockname()[1]}/mcp"
        settings = connections.of({"url": url, "timeout": 10})
        assert settings is not None
        async with served:
            server = connection.Server(settings, environ={})
            assert (await harness.call(server, "work", {}))["content"]
            await server.close()
        assert eras.beginning(settings) == "initialized"

    asyncio.run(story())


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer the requests of a connection; close it if it is probed."""
    import json

    results: dict[str, Any] = {
        "initialize": {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "old", "version": "1"},
        },
        "tools/list": {"tools": [{"name": "work", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": "done"}]},
    }
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = int(head.partition("content-length: ")[2].partition("\r")[0] or 0)
            message = json.loads(await reader.readexactly(length) or b"{}")
            if message.get("method") == "server/discover":
                break
            result = results.get(message.get("method", ""))
            if result is None:
                writer.write(b"HTTP/1.1 405 -\r\ncontent-length: 0\r\n\r\n")
                continue
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
            kind = b"content-type: application/json\r\n"
            writer.write(
                b"HTTP/1.1 200 OK\r\n" + kind + f"content-length: {len(body)}\r\n\r\n".encode() + body
            )
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()
