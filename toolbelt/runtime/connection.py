"""Connections for programs in the same process: the same requests and calls as over HTTP.

They return the same documents as the HTTP connections of toolbelt.adapters.connection, for frameworks that run beside
Django. They need no token, so any code that imports this module may act as any agent.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from asgiref.sync import sync_to_async

from toolbelt import conf
from toolbelt.adapters.connection import protocol
from toolbelt.runtime import calls, surfaces
from toolbelt.runtime.calls import admissions, approval_waits
from toolbelt.runtime.calls.incoming import Call, RequestKey
from toolbelt.runtime.operators import OPERATORS
from toolbelt.runtime.surfaces import appending, documents


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
        model: str | None = None,
        conversation: Mapping[str, Any] | None = None,
    ) -> protocol.Document:
        """Return the current surface. See protocol.Connection."""
        shown = surfaces.of(_key(self._agent, run), message)
        talk = None if conversation is None else appending.Conversation(**conversation)
        return documents.of(shown, form, declared, model, talk)

    def call(self, run: protocol.Run, tool: str, arguments: Any, conversation: str = "") -> protocol.Document:
        """Call a tool. See protocol.Connection."""
        key = _key(self._agent, run)
        call = Call(key=key, tool=tool, arguments=arguments, conversation=conversation)
        return calls.answer_blocking(call).document()

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
        """Check what would happen to a call. See protocol.Connection."""
        key = _key(self._agent, run)
        call = Call(key=key, tool=tool, arguments=arguments, version=version, conversation=conversation)
        return calls.check(call, ask=ask).document()

    def declare(self, plugin: str, tools: Sequence[Mapping[str, Any]]) -> protocol.Document:
        """Declare the program's own tools. See protocol.Connection."""
        if OPERATORS.declare is None:
            raise RuntimeError("Toolbelt's Django app is not installed: add 'toolbelt' to INSTALLED_APPS.")
        return OPERATORS.declare(self._agent, plugin, tools)

    def admit(
        self, run: protocol.Run, tool: str, arguments: Any, version: str = "", conversation: str = ""
    ) -> protocol.Document:
        """Have a call admitted. See protocol.Connection."""
        call = Call(
            key=_key(self._agent, run),
            tool=tool,
            arguments=arguments,
            version=version,
            conversation=conversation,
        )
        return admissions.admit(call).document()

    def report(self, call_id: str, outcome: protocol.Outcome) -> None:
        """Report an admitted call. See protocol.Connection."""
        admissions.report(
            self._agent,
            call_id,
            outcome.code,
            error=outcome.error,
            duration_ms=outcome.duration_ms,
            result_bytes=outcome.result_bytes,
        )

    def record(
        self,
        run: protocol.Run,
        tool: str,
        arguments: Any,
        outcome: protocol.Outcome,
        seconds_ago: float,
    ) -> None:
        """Record a call that ran without an admission. See protocol.Connection."""
        admissions.record(
            Call(key=_key(self._agent, run), tool=tool, arguments=arguments),
            outcome.code,
            seconds_ago=seconds_ago,
            error=outcome.error,
            duration_ms=outcome.duration_ms,
            result_bytes=outcome.result_bytes,
        )


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
        model: str | None = None,
        conversation: Mapping[str, Any] | None = None,
    ) -> protocol.Document:
        """Return the current surface. See protocol.Connection."""
        ask = sync_to_async(self._blocking.surface)
        return await ask(
            run, message=message, form=form, declared=declared, model=model, conversation=conversation
        )

    async def call(
        self, run: protocol.Run, tool: str, arguments: Any, conversation: str = ""
    ) -> protocol.Document:
        """Call a tool. Cancelling the call cancels the tool. See protocol.Connection."""
        call = Call(
            key=_key(self._agent, run),
            tool=tool,
            arguments=arguments,
            conversation=conversation,
            wait=conf.APPROVAL_WAIT,
        )
        return (await calls.answer(call)).document()

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
        """Check what would happen to a call. See protocol.Connection."""
        return await sync_to_async(self._blocking.check)(run, tool, arguments, version, conversation, ask=ask)

    async def declare(self, plugin: str, tools: Sequence[Mapping[str, Any]]) -> protocol.Document:
        """Declare the program's own tools. See protocol.Connection."""
        return await sync_to_async(self._blocking.declare)(plugin, tools)

    async def admit(
        self, run: protocol.Run, tool: str, arguments: Any, version: str = "", conversation: str = ""
    ) -> protocol.Document:
        """Have a call admitted. See protocol.Connection."""
        admit = functools.partial(
            sync_to_async(self._blocking.admit), run, tool, arguments, version, conversation
        )
        answer = await admit()
        # Not in the thread, which others use as well.
        approval = answer.get("approval")
        if approval and await approval_waits.until_decided(approval["id"], conf.APPROVAL_WAIT):
            return await admit()
        return answer

    async def report(self, call_id: str, outcome: protocol.Outcome) -> None:
        """Report an admitted call. See protocol.Connection."""
        await sync_to_async(self._blocking.report)(call_id, outcome)

    async def record(
        self,
        run: protocol.Run,
        tool: str,
        arguments: Any,
        outcome: protocol.Outcome,
        seconds_ago: float,
    ) -> None:
        """Record a call that ran without an admission. See protocol.Connection."""
        await sync_to_async(self._blocking.record)(run, tool, arguments, outcome, seconds_ago)

    def blocking(self) -> BlockingLocal:
        """Return the blocking connection of the same agent."""
        return self._blocking


def _key(agent: str, run: protocol.Run) -> RequestKey:
    return RequestKey(agent, run.session, run.request_id, run.subagent)
