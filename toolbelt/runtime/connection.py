"""Connections for programs in the same process: the same requests and calls as over HTTP.

They return the same documents as the HTTP connections of toolbelt.adapters.connection, for frameworks that run beside
Django. They need no token, so any code that imports this module may act as any agent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from asgiref.sync import sync_to_async

from toolbelt.adapters.connection import protocol
from toolbelt.runtime import calls, documents, surfaces


class BlockingLocal:
    """An in-process connection for one agent, for threads that may block."""

    def __init__(self, agent: str) -> None:
        self._agent = agent

    def surface(
        self,
        run: protocol.Run,
        *,
        message: str | None = None,
        form: str | None = None,
        declared: Mapping[str, str] | None = None,
    ) -> protocol.Document:
        """Return the current surface. See protocol.Connection."""
        answer = surfaces.ask(self._agent, run.session, run.request_id, message, run.subagent)
        return documents.of(answer, form, declared)

    def call(self, run: protocol.Run, tool: str, arguments: Any) -> protocol.Document:
        """Call a tool. See protocol.Connection."""
        return calls.run(self._agent, tool, arguments, run.session, run.request_id, run.subagent).document()


class Local:
    """An in-process connection for one agent, for event loops."""

    def __init__(self, agent: str) -> None:
        self._agent, self._blocking = agent, BlockingLocal(agent)

    async def surface(
        self,
        run: protocol.Run,
        *,
        message: str | None = None,
        form: str | None = None,
        declared: Mapping[str, str] | None = None,
    ) -> protocol.Document:
        """Return the current surface. See protocol.Connection."""
        ask = sync_to_async(self._blocking.surface)
        return await ask(run, message=message, form=form, declared=declared)

    async def call(self, run: protocol.Run, tool: str, arguments: Any) -> protocol.Document:
        """Call a tool. Cancelling the call cancels the tool. See protocol.Connection."""
        answer = await calls.arun(self._agent, tool, arguments, run.session, run.request_id, run.subagent)
        return answer.document()

    def blocking(self) -> BlockingLocal:
        """Return the blocking connection of the same agent."""
        return self._blocking
