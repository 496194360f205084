"""How is Toolbelt asked over HTTP? With the agent's token, from an event loop or from a thread that may block."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any, Self

import httpx

from toolbelt.adapters.connection import protocol, wire

# Before a question is asked again, in seconds: a restart of Toolbelt takes about as long.
PAUSES = (0.1, 0.5, 2.0)
# A tool may take its time to answer a call.
TIMEOUT = httpx.Timeout(10.0, read=300.0)


class Http:
    """A connection over HTTP. Close it, or use it as an asynchronous context."""

    def __init__(
        self,
        address: str,
        agent: str,
        token: str,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        pauses: Sequence[float] = PAUSES,
    ) -> None:
        self._wire = wire.Wire(address, agent, pauses)
        self._client = httpx.AsyncClient(transport=transport, headers=_headers(token), timeout=TIMEOUT)

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

    async def aclose(self) -> None:
        """Let go of what is open."""
        await self._client.aclose()

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
                    told = await self._client.request(**asked)
                except httpx.RequestError as error:
                    told = error
            else:
                await asyncio.sleep(asked)


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
