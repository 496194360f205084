"""Tests that reading a server's list leaves others their turns on the event loop."""

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


def test_a_long_list_lets_others_have_their_turn() -> None:
    async def read() -> tuple[int, int]:
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count())
        answer = await paging.walk(Client(), limits.Limits())  # type: ignore[arg-type]
        counting.cancel()
        return len(answer.tools), turns

    tools, turns = asyncio.run(read())

    assert tools == 1000
    assert turns >= 1000 // paging.TURN


def test_the_client_is_imported_in_a_thread(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    script = scripting.Script(tmp_path)
    by: list[threading.Thread] = []
    load = opening.load

    def loaded() -> None:
        by.append(threading.current_thread())
        load()

    monkeypatch.setattr(opening, "load", loaded)

    async def ask() -> None:
        reached = connections.of(script.connection)
        assert reached is not None
        server = connection.Server(reached, environ={})
        await server.ask()
        await server.close()

    asyncio.run(ask())

    assert by
    assert threading.current_thread() not in by
