"""Tests that reading a server's list does not block the event loop."""

from __future__ import annotations

import asyncio
import threading
import types
from typing import Any

import mcp_types
import pytest

from tests.plugins.upstream import scripting
from toolbelt.core import connections
from toolbelt.plugins.upstream import connection, limits, opening, paging


class Client:
    """A client whose server lists many tools on one page."""

    server_capabilities = types.SimpleNamespace(tools=object(), prompts=None, resources=None)
    server_info = None
    protocol_version = "2025-11-25"

    async def list_tools(self, cursor: str | None) -> Any:
        return mcp_types.ListToolsResult(
            tools=[
                mcp_types.Tool(name=f"t{number}", input_schema={"type": "object"}) for number in range(1000)
            ]
        )


def test_reading_a_long_list_yields_to_other_tasks() -> None:
    async def read() -> tuple[int, int]:
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count())
        answer = await paging.read_lists(Client(), {}, limits.Limits())  # type: ignore[arg-type]
        counting.cancel()
        return len(answer.tools), turns

    tools, turns = asyncio.run(read())

    assert tools == 1000
    assert turns >= 1000 // paging.YIELD_EVERY


def test_a_list_of_too_many_pages_is_named() -> None:
    class Paging(Client):
        async def list_tools(self, cursor: str | None) -> Any:
            tool = mcp_types.Tool(name=f"t{cursor}", input_schema={"type": "object"})
            return mcp_types.ListToolsResult(tools=[tool], next_cursor=str(int(cursor or 0) + 1))

    answer = asyncio.run(paging.read_lists(Paging(), {}, limits.Limits(pages=2)))  # type: ignore[arg-type]

    assert (len(answer.tools), answer.is_complete) == (2, False)
    assert [problem.message.split(":")[0] for problem in answer.problems] == [
        "The server lists its tools on more than 2 pages"
    ]


def test_the_client_package_is_imported_in_a_thread(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    script = scripting.Script(tmp_path)
    threads: list[threading.Thread] = []
    original_load = opening.load

    def record_and_load() -> None:
        threads.append(threading.current_thread())
        original_load()

    monkeypatch.setattr(opening, "load", record_and_load)

    async def list_server() -> None:
        settings = connections.of(script.connection)
        assert settings is not None
        server = connection.Server(settings, environ={})
        await server.ask()
        await server.close()

    asyncio.run(list_server())

    assert threads
    assert threading.current_thread() not in threads
