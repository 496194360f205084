"""How is Toolbelt asked over HTTP? With the agent's token, from an event loop or from a thread that may block."""

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

# Before a question is asked again, in seconds: a restart of Toolbelt takes about as long.
PAUSES = (0.1, 0.5, 2.0)
# A tool may take its time to answer a call.
TIMEOUT = httpx.Timeout(10.0, read=300.0)


class Http:
    """A connection over HTTP, from whichever event loop. Close it, or use it as an asynchronous context.

    ``blocking``: its twin for threads that may block, where that takes a transport of its own, too.
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
        self._client_of = functools.partial(
            httpx.AsyncClient, transport=transport, headers=_headers(token), timeout=TIMEOUT
        )
        self._trusted: ssl.SSLContext | None = None
        # Frameworks that are asked from a thread run a loop for each question, and what is open belongs to its loop.
        self._clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = (
            weakref.WeakKeyDictionary()
        )
        self._twin = blocking
        self._twin_of = functools.partial(BlockingHttp, address, agent, token, pauses=pauses)

    async def surface(
        self,
        run: protocol.Run,
        *,
        message: str | None = None,
        form: str | None = None,
        declared: Mapping[str, str] | None = None,
    ) -> protocol.Document:
        """Ask what the model gets now; see Connection."""
        return await self._have(self._wire.asking(run, message, form, declared))

    async def call(self, run: protocol.Run, tool: str, arguments: Any) -> protocol.Document:
        """Call a tool, once; see Connection."""
        return await self._have(self._wire.calling(run, tool, arguments))

    def blocking(self) -> BlockingHttp:
        """Give its twin for threads that may block; see Connection."""
        if self._twin is None:
            self._twin = self._twin_of()
        return self._twin

    async def aclose(self) -> None:
        """Let go of what is open in this loop, and in the twin."""
        if client := self._clients.pop(asyncio.get_running_loop(), None):
            await client.aclose()
        if self._twin is not None:
            self._twin.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.aclose()

    async def _have(self, talk: wire.Talk) -> protocol.Document:
        told: wire.Told = None
        while True:
            try:
                asked = talk.send(told)
            except StopIteration as done:
                answer: protocol.Document = done.value
                return answer
            told = None
            if isinstance(asked, dict):
                try:
                    told = await self._client().request(**asked)
                except httpx.RequestError as error:
                    told = error
            else:
                await asyncio.sleep(asked)

    def _client(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            # To read whom to trust takes longer than to ask.
            self._trusted = self._trusted or httpx.create_ssl_context()
            self._clients[loop] = self._client_of(verify=self._trusted)
        return self._clients[loop]


class BlockingHttp:
    """The blocking twin of Http. Close it, or use it as a context."""

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
    ) -> protocol.Document:
        """Ask what the model gets now; see Connection."""
        return self._have(self._wire.asking(run, message, form, declared))

    def call(self, run: protocol.Run, tool: str, arguments: Any) -> protocol.Document:
        """Call a tool, once; see Connection."""
        return self._have(self._wire.calling(run, tool, arguments))

    def close(self) -> None:
        """Let go of what is open."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def _have(self, talk: wire.Talk) -> protocol.Document:
        told: wire.Told = None
        while True:
            try:
                asked = talk.send(told)
            except StopIteration as done:
                answer: protocol.Document = done.value
                return answer
            told = None
            if isinstance(asked, dict):
                try:
                    told = self._client.request(**asked)
                except httpx.RequestError as error:
                    told = error
            else:
                time.sleep(asked)


def _headers(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", "Accept": "application/json"}
