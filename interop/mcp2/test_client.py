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
    def __init__(self, client: mcp.Client, changes: mcp_checks.Changes) -> None:
        self._client = client
        self.version, self.instructions = client.protocol_version, client.instructions or ""
        self.changes = changes

    async def tools(self) -> Mapping[str, Any]:
        async def fetch_page(cursor: str | None) -> Any:
            return _to_json(await self._client.list_tools(cursor=cursor))

        return {tool["name"]: tool async for page in mcp_checks.pages(fetch_page) for tool in page["tools"]}

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            return _to_json(await self._client.call_tool(tool, dict(arguments)))
        except mcp.MCPError as error:
            raise mcp_checks.RequestError(error.code, error.message) from error


class TestHandshake(mcp_checks.Checks):
    @contextlib.asynccontextmanager
    async def connecting(self, agent: str, session: str) -> AsyncIterator[Client]:
        changes, listening = mcp_checks.Changes(), asyncio.Event()

        async def on_response(response: httpx2.Response) -> None:
            if response.request.method == "GET" and response.is_success:
                listening.set()

        async def on_message(message: Any) -> None:
            if isinstance(message, types.ToolListChangedNotification):
                await changes.record()

        async with (
            _http(agent, on_response) as http,
            mcp.Client(_transport(http, agent, session), mode="legacy", message_handler=on_message) as client,
        ):
            await mcp_checks.in_time(listening.wait())
            yield Client(client, changes)


class TestModern(mcp_checks.Checks):
    """The checks in the newer era, which the client negotiates automatically."""

    version, mode = mcp_checks.MODERN, "auto"

    @contextlib.asynccontextmanager
    async def connecting(self, agent: str, session: str) -> AsyncIterator[Client]:
        changes = mcp_checks.Changes()
        async with (
            _http(agent) as http,
            mcp.Client(_transport(http, agent, session), mode=self.mode) as client,
            client.listen(tools_list_changed=True) as subscription,
        ):
            assert subscription.honored.tools_list_changed

            async def listen() -> None:
                async for _ in subscription:
                    await changes.record()

            task = asyncio.create_task(listen())
            try:
                yield Client(client, changes)
            finally:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task


def _http(agent: str, *hooks: Any) -> httpx2.AsyncClient:
    headers = {"Authorization": f"Bearer {mcp_checks.TOKENS[agent]}"}
    return httpx2.AsyncClient(headers=headers, timeout=60, event_hooks={"response": [*hooks]})


def _transport(http: httpx2.AsyncClient, agent: str, session: str) -> Any:
    return streamable_http.streamable_http_client(mcp_checks.address(agent, session), http_client=http)


def _to_json(message: Any) -> Any:
    return message.model_dump(mode="json", by_alias=True, exclude_none=True)
