"""How is a tool called for a client: with its progress told, and taken back when the client wants it no more?"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import structlog

from toolbelt.core import meta_tools
from toolbelt.mcp import doors, heads, protocol
from toolbelt.runtime import access, calls, standings, threads

# How much progress waits to be told; a client that does not read hears of the newest.
MOST_WAITING = 64


@dataclass(eq=False, slots=True, kw_only=True)
class Call:
    """One call: who makes it, of what, and what is heard of it. ``news`` rings when there is progress to tell."""

    head: heads.Head
    bearer: access.Bearer
    request_id: str
    tool: str
    arguments: Any
    by_dispatch: bool
    progress_token: protocol.Id | None
    known: standings.Standings | None = None
    news: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: list[bytes] = field(default_factory=list)

    @property
    def named(self) -> str:
        """Give the name of the tool that is meant."""
        named = self.arguments.get("tool") if self.by_dispatch and self.tool == meta_tools.CALL else None
        return named if isinstance(named, str) else self.tool

    async def run(self) -> calls.Answer:
        """Run it. Raises protocol.Fault for whoever may not call; cancelling it cancels the tool."""
        structlog.contextvars.bind_contextvars(request_id=self.request_id, bearer=self.bearer.name)
        loop = asyncio.get_running_loop()

        async def progress(progress: float, total: float | None, message: str | None) -> None:
            # Told on the upstream servers' own loop.
            loop.call_soon_threadsafe(self._heard, progress, total, message)

        if self.bearer.kind == "operator":
            await threads.run(doors.check_call, self.bearer, self.head.agent)
        return await calls.arun(
            self.head.agent,
            self.tool,
            self.arguments,
            self.head.session,
            self.request_id,
            progress=None if self.progress_token is None else progress,
            by_dispatch=self.by_dispatch,
            may_call=self._check_token,
            look=self._look,
        )

    async def _look(self) -> standings.Standing | None:
        """Return how things stand for this call: its token, its agent, its session. None if a thread has to ask."""
        if self.known is None or self.bearer.kind == "operator":
            return None
        asked = standings.Asked(self.head.token, self.head.agent, self.head.session, self.request_id)
        return await self.known.of(asked)

    def _check_token(self) -> None:
        """Raise protocol.Fault if the token opens this call no longer: it may be revoked while the call waits."""
        doors.check_call(doors.admitted(self.head.token, self.head.agent), self.head.agent)

    def heard(self) -> list[bytes]:
        """Give what there is to tell, and begin anew."""
        self.news.clear()
        told, self.waiting = self.waiting, []
        return told

    def _heard(self, progress: float, total: float | None, message: str | None) -> None:
        said: dict[str, Any] = {"progressToken": self.progress_token, "progress": progress}
        if total is not None:
            said["total"] = total
        if message is not None:
            said["message"] = message
        self.waiting.append(protocol.notification(protocol.PROGRESS, said))
        del self.waiting[:-MOST_WAITING]
        self.news.set()
