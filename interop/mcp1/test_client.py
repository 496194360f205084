"""Tests the official Python client of the 1.x line with Toolbelt."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx
import mcp
import mcp_checks
from mcp import types
from mcp.client import streamable_http


class Client:
    def __init__(
        self, session: mcp.ClientSession, initialized: types.InitializeResult, changes: mcp_checks.Changes
    ) -> None:
        self._session = session
        self.version, self.instructions = str(initialized.protocolVersion), initialized.instructions or ""
        self.changes = changes

    async def tools(self) -> Mapping[str, Any]:
        async def fetch_page(cursor: str | None) -> Any:
            return _to_json(await self._session.list_tools(cursor))

        return {tool["name"]: tool async for page in mcp_checks.pages(fetch_page) for tool in page["tools"]}

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            return _to_json(await self._session.call_tool(tool, dict(arguments)))
        except mcp.McpError as error:
            raise mcp_checks.RequestError(error.error.code, error.error.message) from error


class TestHandshake(mcp_checks.Checks):
    @contextlib.asynccontextmanager
    async def connecting(self, agent: str, session: str) -> AsyncIterator[Client]:
        changes, listening = mcp_checks.Changes(), asyncio.Event()

        async def on_response(response: httpx.Response) -> None:
            if response.request.method == "GET" and response.is_success:
                listening.set()

        async def on_message(message: Any) -> None:
            if isinstance(message, types.ServerNotification) and isinstance(
                message.root, types.ToolListChangedNotification
            ):
                await changes.record()

        headers = {"Authorization": f"Bearer {mcp_checks.TOKENS[agent]}"}
        async with (
            httpx.AsyncClient(headers=headers, timeout=60, event_hooks={"response": [on_response]}) as http,
            streamable_http.streamable_http_client(
                mcp_checks.address(agent, session), http_client=http
            ) as streams,
            mcp.ClientSession(streams[0], streams[1], message_handler=on_message) as client,
        ):
            initialized = await client.initialize()
            await mcp_checks.in_time(listening.wait())
            yield Client(client, initialized, changes)


def _to_json(message: Any) -> Any:
    return message.model_dump(mode="json", by_alias=True, exclude_none=True)
