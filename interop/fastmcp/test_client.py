"""Tests FastMCP's client with Toolbelt, in both eras of the protocol."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

import fastmcp
import httpx2
import mcp
import mcp_checks
from fastmcp.client import messages, transports


class Client:
    def __init__(self, client: fastmcp.Client[Any], changes: mcp_checks.Changes) -> None:
        self._client = client
        self.version = str(client.session.protocol_version)
        self.instructions = client.session.instructions or ""
        self.changes = changes

    async def tools(self) -> Mapping[str, Any]:
        return {tool.name: _to_json(tool) for tool in await self._client.list_tools()}

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            return _to_json(await self._client.call_tool_mcp(tool, dict(arguments)))
        except mcp.MCPError as error:
            raise mcp_checks.RequestError(error.code, error.message) from error


class ChangeHandler(messages.MessageHandler):
    def __init__(self, changes: mcp_checks.Changes) -> None:
        self._changes = changes

    async def on_tool_list_changed(self, message: Any) -> None:
        await self._changes.record()


class TestHandshake(mcp_checks.Checks):
    @contextlib.asynccontextmanager
    async def connecting(self, agent: str, session: str) -> AsyncIterator[Client]:
        changes, listening = mcp_checks.Changes(), asyncio.Event()

        async def on_response(response: httpx2.Response) -> None:
            if response.request.method == "GET" and response.is_success:
                listening.set()

        transport = _transport(agent, session, on_response)
        async with fastmcp.Client(transport, mode="legacy", message_handler=ChangeHandler(changes)) as client:
            await mcp_checks.in_time(listening.wait())
            yield Client(client, changes)


class TestModern(mcp_checks.Checks):
    """The checks in the newer era. FastMCP's client cannot listen, so its session does."""

    version = mcp_checks.MODERN

    @contextlib.asynccontextmanager
    async def connecting(self, agent: str, session: str) -> AsyncIterator[Client]:
        changes = mcp_checks.Changes()
        async with (
            fastmcp.Client(_transport(agent, session), mode="auto") as client,
            mcp.client.subscriptions.listen(client.session, tools_list_changed=True) as subscription,
        ):

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


def _transport(agent: str, session: str, *hooks: Any) -> transports.StreamableHttpTransport:
    def client(**options: Any) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(**options, event_hooks={"response": [*hooks]})

    return transports.StreamableHttpTransport(
        mcp_checks.address(agent, session), auth=mcp_checks.TOKENS[agent], httpx_client_factory=client
    )


def _to_json(message: Any) -> Any:
    return message.model_dump(mode="json", by_alias=True, exclude_none=True)
