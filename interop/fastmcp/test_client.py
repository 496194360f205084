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
    def __init__(self, speaking: fastmcp.Client[Any], changes: mcp_checks.Changes) -> None:
        self._speaking = speaking
        self.version = str(speaking.session.protocol_version)
        self.instructions = speaking.session.instructions or ""
        self.changes = changes

    async def tools(self) -> Mapping[str, Any]:
        return {tool.name: _written(tool) for tool in await self._speaking.list_tools()}

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            return _written(await self._speaking.call_tool_mcp(tool, dict(arguments)))
        except mcp.MCPError as error:
            raise mcp_checks.Refused(error.code, error.message) from error


class Hearing(messages.MessageHandler):
    def __init__(self, changes: mcp_checks.Changes) -> None:
        self._changes = changes

    async def on_tool_list_changed(self, message: Any) -> None:
        await self._changes.hear()


class TestHandshake(mcp_checks.Checks):
    @contextlib.asynccontextmanager
    async def connecting(self, agent: str, session: str) -> AsyncIterator[Client]:
        changes, hears = mcp_checks.Changes(), asyncio.Event()

        async def answered(response: httpx2.Response) -> None:
            if response.request.method == "GET" and response.is_success:
                hears.set()

        transport = _transport(agent, session, answered)
        async with fastmcp.Client(transport, mode="legacy", message_handler=Hearing(changes)) as speaking:
            await mcp_checks.in_time(hears.wait())
            yield Client(speaking, changes)


class TestModern(mcp_checks.Checks):
    """Listening is the session's own in FastMCP: its client has no word for it."""

    version = mcp_checks.MODERN

    @contextlib.asynccontextmanager
    async def connecting(self, agent: str, session: str) -> AsyncIterator[Client]:
        changes = mcp_checks.Changes()
        async with (
            fastmcp.Client(_transport(agent, session), mode="auto") as speaking,
            mcp.client.subscriptions.listen(speaking.session, tools_list_changed=True) as subscription,
        ):

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


def _transport(agent: str, session: str, *answered: Any) -> transports.StreamableHttpTransport:
    def client(**options: Any) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(**options, event_hooks={"response": [*answered]})

    return transports.StreamableHttpTransport(
        mcp_checks.address(agent, session), auth=mcp_checks.TOKENS[agent], httpx_client_factory=client
    )


def _written(message: Any) -> Any:
    return message.model_dump(mode="json", by_alias=True, exclude_none=True)
