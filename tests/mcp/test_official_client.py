"""Tests with the official client in both eras over a real connection. `make interop` runs more."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
import mcp
import mcp_types as types
import pytest
import uvicorn
from asgiref.sync import async_to_sync, sync_to_async
from mcp.client import streamable_http

from tests.api.conftest import SETUP
from tests.mcp.conftest import NEW, OLD, Endpoint
from tests.runtime import sample_plugins
from tests.runtime.conftest import Install
from toolbelt.control.access import switches
from toolbelt.control.config import belts
from toolbelt.control.people import tokens

KB = [tool.name for tool in sample_plugins.Kb.tools]
SECONDS = 20
CONFIGURED: dict[str, Any] = {
    "toolkits": [
        {"key": "asking", "members": ["kb__search"], "policy": "Ask twice."},
        {"key": "more", "members": ["kb__plain"]},
    ],
    "agents": [
        {"key": "ada", "tools_config": {"asking": True}, "allowed_toolkits": ["more"], "mcp_loading": "list"},
        {"key": "bob"},
    ],
}
ERAS = {"legacy": OLD, "auto": NEW}


class ListChanges:
    """Counts a client's notifications of changed tools."""

    def __init__(self) -> None:
        self.count = 0
        self.changed = asyncio.Event()

    async def on_message(self, message: Any = None) -> None:
        if message is None or isinstance(message, types.ToolListChangedNotification):
            self.count += 1
            self.changed.set()

    async def next_change(self) -> None:
        async with asyncio.timeout(SECONDS):
            await self.changed.wait()
        self.changed.clear()


@pytest.fixture
def stored(transactional_db: None, install: Install) -> None:
    install("Kb")
    belts.import_(SETUP, CONFIGURED)


@pytest.fixture
def with_client(endpoint: Endpoint) -> Callable[..., None]:
    """Return a function that runs another one with a connected, listening client of ada in this mode."""
    token = tokens.issue(SETUP, agent="ada").text

    def do(mode: str, act: Callable[[mcp.Client, ListChanges], Any], session: str = "") -> None:
        async def main() -> None:
            async with asyncio.timeout(2 * SECONDS), endpoint.serving(), served(endpoint) as address:
                where = f"{address}/mcp/ada" + (f"/s/{session}" if session else "")
                async with connected(where, token, mode) as (client, list_changes):
                    assert client.protocol_version == ERAS[mode]
                    await act(client, list_changes)

        async_to_sync(main)()

    return do


@contextlib.asynccontextmanager
async def served(endpoint: Endpoint) -> AsyncIterator[str]:
    """Serve on a free port, and yield the address."""
    config = uvicorn.Config(endpoint.application, lifespan="off", log_config=None, access_log=False)
    server = uvicorn.Server(config)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        # Clients that connect before the server is ready wait here.
        listening.listen()
        running = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            await running


@contextlib.asynccontextmanager
async def connected(address: str, token: str, mode: str) -> AsyncIterator[tuple[mcp.Client, ListChanges]]:
    list_changes, listens = ListChanges(), asyncio.Event()

    async def answered(response: httpx2.Response) -> None:
        if response.request.method == "GET":
            listens.set()

    hooks = {"response": [answered]}
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, event_hooks=hooks) as http,
        mcp.Client(
            streamable_http.streamable_http_client(address, http_client=http),
            mode=mode,
            message_handler=list_changes.on_message,
        ) as client,
    ):
        if mode == "legacy":
            await listens.wait()
            yield client, list_changes
            return
        async with client.listen(tools_list_changed=True):
            # The message handler also receives the subscription's notifications.
            yield client, list_changes


async def names(client: mcp.Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools()).tools]


@pytest.mark.parametrize("mode", ERAS)
def test_the_official_client_lists_and_calls_tools_and_is_refused(
    with_client: Callable[..., None], mode: str
):
    async def act(client: mcp.Client, _: ListChanges) -> None:
        assert await names(client) == ["call_tool", "kb__search", "search_tools"]
        assert client.instructions is not None
        assert "Ask twice." in client.instructions
        result = await client.call_tool("kb__search", {"query": "tea"})
        assert not result.is_error
        assert isinstance(result.content[0], types.TextContent)
        assert result.content[0].text == '{"results":["tea"]}'
        assert (await client.call_tool("kb__search", {})).is_error
        dispatched = await client.call_tool("call_tool", {"tool": "kb__plain"})
        assert not dispatched.is_error
        for hidden in ("kb__count", "kb__nothing"):
            refused = await client.call_tool(hidden)
            assert refused.is_error
            assert isinstance(refused.content[0], types.TextContent)
            assert refused.content[0].text == f"There is no tool named '{hidden}' that you may call."

    with_client(mode, act)


@pytest.mark.parametrize("mode", ERAS)
def test_the_official_client_is_notified_of_switch_changes(with_client: Callable[..., None], mode: str):
    async def flip(agent: str, on: bool) -> None:
        await sync_to_async(switches.flip)(SETUP.replace(confirm=True), agent, "asking", on)

    async def act(client: mcp.Client, list_changes: ListChanges) -> None:
        assert "kb__search" in await names(client)
        await flip("bob", True)
        await flip("ada", False)
        await list_changes.next_change()
        assert "kb__search" not in await names(client)
        assert (await client.call_tool("kb__search", {"query": "tea"})).is_error
        await flip("ada", True)
        await list_changes.next_change()
        assert "kb__search" in await names(client)
        assert list_changes.count == 2

    with_client(mode, act)


def test_the_official_client_s_list_grows_by_loaded_tools(with_client: Callable[..., None]):
    async def act(client: mcp.Client, list_changes: ListChanges) -> None:
        before = await names(client)
        assert "load_tools" in before
        await client.call_tool("load_tools", {"toolkit": "more"})
        await list_changes.next_change()
        assert [name for name in await names(client) if name not in before] == ["kb__plain"]

    with_client("legacy", act, session="s1")
