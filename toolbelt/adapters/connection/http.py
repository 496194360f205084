"""Connections to Toolbelt over HTTP with an agent's token, for event loops and for threads that may block."""

from __future__ import annotations

import asyncio
import functools
import ssl
import time
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Self

import httpx

from toolbelt.adapters.connection import protocol, wire

# The pauses before a surface is requested again, in seconds. A restart of Toolbelt takes about as long.
PAUSES = (0.1, 0.5, 2.0)
# Tools may be slow.
TIMEOUT = httpx.Timeout(10.0, read=300.0)


class Http:
    """A connection over HTTP, for any event loop. Close it, or use it as an asynchronous context manager.

    ``blocking``: the connection that :meth:`blocking` returns, if it needs settings of its own, such as a transport.
    """

    def __init__(
        self,
        address: str,
        agent: str,
        token: str,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        pauses: Sequence[float] = PAUSES,
        blocking: BlockingHttp | None = None,
    ) -> None:
        self._wire = wire.Wire(address, agent, pauses)
        self._create_client = functools.partial(
            httpx.AsyncClient, transport=transport, headers=_headers(token), timeout=TIMEOUT
        )
        self._ssl_context: ssl.SSLContext | None = None
        # A client belongs to its event loop, and frameworks may run a new loop for each request.
        self._clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = (
            weakref.WeakKeyDictionary()
        )
        self._blocking = blocking
        self._create_blocking = functools.partial(BlockingHttp, address, agent, token, pauses=pauses)

    async def surface(
        self,
        run: protocol.Run,
        *,
        message: str | None = None,
        form: str | None = None,
        declared: Mapping[str, str] | None = None,
        model: str | None = None,
        conversation: Mapping[str, Any] | None = None,
    ) -> protocol.Document:
        """Return the current surface. See Connection."""
        return await self._exchange(
            self._wire.fetch_surface(run, message, form, declared, model, conversation)
        )

    async def call(
        self, run: protocol.Run, tool: str, arguments: Any, conversation: str = ""
    ) -> protocol.Document:
        """Call a tool. See Connection."""
        return await self._exchange(self._wire.call_tool(run, tool, arguments, conversation))

    async def check(
        self,
        run: protocol.Run,
        tool: str,
        arguments: Any,
        version: str = "",
        conversation: str = "",
        *,
        ask: bool = False,
    ) -> protocol.Document:
        """Check what would happen to a call. See Connection."""
        return await self._exchange(self._wire.check(run, tool, arguments, version, conversation, ask))

    async def declare(self, plugin: str, tools: Sequence[protocol.Document]) -> protocol.Document:
        """Declare the program's own tools. See Connection."""
        return await self._exchange(self._wire.declare(plugin, tools))

    async def admit(
        self, run: protocol.Run, tool: str, arguments: Any, version: str = "", conversation: str = ""
    ) -> protocol.Document:
        """Have a call admitted. See Connection."""
        return await self._exchange(self._wire.admit(run, tool, arguments, version, conversation))

    async def report(self, call_id: str, outcome: protocol.Outcome) -> None:
        """Report an admitted call. See Connection."""
        await self._exchange(self._wire.report(call_id, outcome))

    async def record(
        self,
        run: protocol.Run,
        tool: str,
        arguments: Any,
        outcome: protocol.Outcome,
        seconds_ago: float,
    ) -> None:
        """Record a call that ran without an admission. See Connection."""
        await self._exchange(self._wire.record(run, tool, arguments, outcome, seconds_ago))

    def blocking(self) -> BlockingHttp:
        """Return the connection for threads that may block. See Connection."""
        if self._blocking is None:
            self._blocking = self._create_blocking()
        return self._blocking

    async def aclose(self) -> None:
        """Close the client of this loop, and the blocking connection."""
        if client := self._clients.pop(asyncio.get_running_loop(), None):
            await client.aclose()
        if self._blocking is not None:
            self._blocking.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.aclose()

    async def _exchange(self, exchange: wire.Exchange) -> protocol.Document:
        response: wire.Response = None
        while True:
            try:
                step = exchange.send(response)
            except StopIteration as stop:
                answer: protocol.Document = stop.value
                return answer
            response = None
            if isinstance(step, dict):
                try:
                    response = await self._client().request(**step)
                except httpx.RequestError as error:
                    response = error
            else:
                await asyncio.sleep(step)

    def _client(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            # Reading the certificates takes longer than a request.
            self._ssl_context = self._ssl_context or httpx.create_ssl_context()
            self._clients[loop] = self._create_client(verify=self._ssl_context)
        return self._clients[loop]


class BlockingHttp:
    """The same as Http, for threads that may block. Close it, or use it as a context manager."""

    def __init__(
        self,
        address: str,
        agent: str,
        token: str,
        *,
        transport: httpx.BaseTransport | None = None,
        pauses: Sequence[float] = PAUSES,
    ) -> None:
        self._wire = wire.Wire(address, agent, pauses)
        self._client = httpx.Client(transport=transport, headers=_headers(token), timeout=TIMEOUT)

    def surface(
        self,
        run: protocol.Run,
        *,
        message: str | None = None,
        form: str | None = None,
        declared: Mapping[str, str] | None = None,
        model: str | None = None,
        conversation: Mapping[str, Any] | None = None,
    ) -> protocol.Document:
        """Return the current surface. See Connection."""
        return self._exchange(self._wire.fetch_surface(run, message, form, declared, model, conversation))

    def call(self, run: protocol.Run, tool: str, arguments: Any, conversation: str = "") -> protocol.Document:
        """Call a tool. See Connection."""
        return self._exchange(self._wire.call_tool(run, tool, arguments, conversation))

    def check(
        self,
        run: protocol.Run,
        tool: str,
        arguments: Any,
        version: str = "",
        conversation: str = "",
        *,
        ask: bool = False,
    ) -> protocol.Document:
        """Check what would happen to a call. See Connection."""
        return self._exchange(self._wire.check(run, tool, arguments, version, conversation, ask))

    def declare(self, plugin: str, tools: Sequence[protocol.Document]) -> protocol.Document:
        """Declare the program's own tools. See Connection."""
        return self._exchange(self._wire.declare(plugin, tools))

    def admit(
        self, run: protocol.Run, tool: str, arguments: Any, version: str = "", conversation: str = ""
    ) -> protocol.Document:
        """Have a call admitted. See Connection."""
        return self._exchange(self._wire.admit(run, tool, arguments, version, conversation))

    def report(self, call_id: str, outcome: protocol.Outcome) -> None:
        """Report an admitted call. See Connection."""
        self._exchange(self._wire.report(call_id, outcome))

    def record(
        self,
        run: protocol.Run,
        tool: str,
        arguments: Any,
        outcome: protocol.Outcome,
        seconds_ago: float,
    ) -> None:
        """Record a call that ran without an admission. See Connection."""
        self._exchange(self._wire.record(run, tool, arguments, outcome, seconds_ago))

    def close(self) -> None:
        """Close the client."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def _exchange(self, exchange: wire.Exchange) -> protocol.Document:
        response: wire.Response = None
        while True:
            try:
                step = exchange.send(response)
            except StopIteration as stop:
                answer: protocol.Document = stop.value
                return answer
            response = None
            if isinstance(step, dict):
                try:
                    response = self._client.request(**step)
                except httpx.RequestError as error:
                    response = error
            else:
                time.sleep(step)


def _headers(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", "Accept": "application/json"}
