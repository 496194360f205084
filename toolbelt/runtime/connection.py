"""How does a program in this very process ask Toolbelt and call through it? As over HTTP, without the way.

The same answers as toolbelt.adapters.connection gives over HTTP, for the clients of frameworks that run beside Django.
Whoever can import this may ask for any agent: there is no token here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from asgiref.sync import sync_to_async

from toolbelt.adapters.connection import protocol
from toolbelt.runtime import calls, documents, surfaces


class BlockingLocal:
    """A connection in process for one agent, for a thread that may block."""

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
        """Ask what the model gets now; see protocol.Connection."""
        answer = surfaces.ask(self._agent, run.session, run.request_id, message, run.subagent)
        return documents.of(answer, form, declared)

    def call(self, run: protocol.Run, tool: str, arguments: Any) -> protocol.Document:
        """Call a tool; see protocol.Connection."""
        return calls.run(self._agent, tool, arguments, run.session, run.request_id, run.subagent).document()


class Local:
    """A connection in process for one agent, for an event loop."""

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
        """Ask what the model gets now; see protocol.Connection."""
        ask = sync_to_async(self._blocking.surface)
        return await ask(run, message=message, form=form, declared=declared)

    async def call(self, run: protocol.Run, tool: str, arguments: Any) -> protocol.Document:
        """Call a tool; see protocol.Connection. Cancelling it cancels the tool, too."""
        answer = await calls.arun(self._agent, tool, arguments, run.session, run.request_id, run.subagent)
        return answer.document()

    def blocking(self) -> BlockingLocal:
        """Give its twin for threads that may block."""
        return self._blocking
