"""Tests the official Python client with Toolbelt, in both eras of the protocol."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx2
import mcp
import mcp_checks
import mcp_types as types
from mcp.client import streamable_http


class Client:
    def __init__(self, speaking: mcp.Client, changes: mcp_checks.Changes) -> None:
        self._speaking = speaking
        self.version, self.instructions = speaking.protocol_version, speaking.instructions or ""
        self.changes = changes

    async def tools(self) -> Mapping[str, Any]:
        async def ask(cursor: str | None) -> Any:
            return _written(await self._speaking.list_tools(cursor=cursor))

        return {tool["name"]: tool async for page in mcp_checks.pages(ask) for tool in page["tools"]}

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            return _written(await self._speaking.call_tool(tool, dict(arguments)))
        except mcp.MCPError as error:
            raise mcp_checks.Refused(error.code, error.message) from error


class TestHandshake(mcp_checks.Checks):
    @contextlib.asynccontextmanager
    async def connecting(self, agent: str, session: str) -> AsyncIterator[Client]:
        changes, hears = mcp_checks.Changes(), asyncio.Event()

        async def answered(response: httpx2.Response) -> None:
            if response.request.method == "GET" and response.is_success:
                hears.set()

        async def heard(message: Any) -> None:
            if isinstance(message, types.ToolListChangedNotification):
                await changes.hear()

        async with (
            _http(agent, answered) as http,
            mcp.Client(_transport(http, agent, session), mode="legacy", message_handler=heard) as speaking,
        ):
            await mcp_checks.in_time(hears.wait())
            yield Client(speaking, changes)


class TestModern(mcp_checks.Checks):
    """Finds out automatically that the server speaks this revision."""

    version, mode = mcp_checks.MODERN, "auto"

    @contextlib.asynccontextmanager
    async def connecting(self, agent: str, session: str) -> AsyncIterator[Client]:
        changes = mcp_checks.Changes()
        async with (
            _http(agent) as http,
            mcp.Client(_transport(http, agent, session), mode=self.mode) as speaking,
            speaking.listen(tools_list_changed=True) as subscription,
        ):
            assert subscription.honored.tools_list_changed

            async def listen() -> None:
                async for _ in subscription:
                    await changes.hear()

            listening = asyncio.create_task(listen())
            try:
                yield Client(speaking, changes)
            finally:
                listening.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await listening


def _http(agent: str, *answered: Any) -> httpx2.AsyncClient:
    headers = {"Authorization": f"Bearer {mcp_checks.TOKENS[agent]}"}
    return httpx2.AsyncClient(headers=headers, timeout=60, event_hooks={"response": [*answered]})


def _transport(http: httpx2.AsyncClient, agent: str, session: str) -> Any:
    return streamable_http.streamable_http_client(mcp_checks.address(agent, session), http_client=http)


def _written(message: Any) -> Any:
    return message.model_dump(mode="json", by_alias=True, exclude_none=True)
