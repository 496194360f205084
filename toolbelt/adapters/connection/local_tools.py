"""Tools that the agent's own program runs: declared once, admitted before each run, and reported afterwards.

``LocalTools`` is a connection that also does this, so that the framework integrations only add how their framework runs
a tool. If Toolbelt cannot be reached, it returns the last known surface for a while, and either refuses the calls of
local tools or, if the program's owner allows it, runs those that the surface has and records them later.
"""

from __future__ import annotations

import collections
import contextlib
import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from toolbelt.adapters.connection import admitted_calls, exchanges, protocol
from toolbelt.core import caches, errors

Offline = Literal["refuse", "allow"]
Approvals = Literal["tell", "pause"]
Admitted = admitted_calls.Admitted
NotAdmittedError = admitted_calls.NotAdmittedError
options = admitted_calls.options

# How long the last known surface is used while Toolbelt cannot be reached, in seconds.
STALE_SECONDS = 300.0
# How many conversations' surfaces are remembered, and how many outcomes wait until Toolbelt can be reached.
MAX_SURFACES, MAX_UNSENT = 256, 1000
# A version stays valid beside a newer one until a day after its last declaration, so a program that runs for longer
# declares it again, in seconds.
DECLARED_AGAIN = 6 * 60 * 60.0
# How many of these are sent at a time, because a model waits meanwhile.
BATCH_SIZE = 20

_log = logging.getLogger(__name__)
_SessionKey = tuple[str | None, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalTool:
    """A tool that the program runs. ``native`` is what runs it: the framework's own tool, or a function."""

    name: str
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=dict)
    native: Any = None

    def declaration(self) -> dict[str, Any]:
        """Return the tool as a declaration lists it."""
        fields: dict[str, Any] = {"name": self.name, "description": self.description}
        return fields | ({"input_schema": dict(self.input_schema)} if self.input_schema else {})


@dataclass(slots=True)
class _LastSurface:
    """The last surface of a conversation, and which local tools may run by it."""

    document: protocol.Document
    allowed: set[str]
    at: float = field(default_factory=time.monotonic)


@dataclass(frozen=True, slots=True)
class _Unsent:
    """An outcome that is sent when Toolbelt can be reached again; ``begun`` is that of a call to record."""

    request: exchanges.Request
    begun: float | None = None

    def now(self) -> exchanges.Request:
        method, args, more = self.request
        return method, args if self.begun is None else (*args, time.monotonic() - self.begun), more


class LocalTools:
    """A connection for an agent whose program also runs tools of its own.

    plugin: The plugin that the tools are declared for; an operator has created it and named this agent.
    offline: What happens to calls of these tools while Toolbelt cannot be reached: "refuse" them, or "allow" those that
        the last known surface has. These are recorded later.
    stale_seconds: How long the last known surface is used then. 0: the error is raised at once.
    pauses: The exceptions with which a tool pauses the run, by the framework's own rules. They are no failures.
    approvals: What happens to calls that people have to approve first: "tell" the model that they wait, or "pause" the
        run as the framework does it. Toolbelt decides when it continues, whatever the program says then.
    """

    def __init__(
        self,
        connection: protocol.Connection,
        tools: Iterable[LocalTool] = (),
        *,
        plugin: str = "",
        offline: Offline = "refuse",
        stale_seconds: float = STALE_SECONDS,
        pauses: tuple[type[BaseException], ...] = (),
        approvals: Approvals = "tell",
    ) -> None:
        self.connection, self._tools = connection, tuple(tools)
        self._pauses = pauses
        if self._tools and not plugin:
            raise ValueError("Local tools need the name of the plugin that they are declared for: plugin=...")
        if offline not in ("refuse", "allow"):
            raise ValueError(f'offline is "refuse" or "allow", and not {offline!r}.')
        if approvals not in ("tell", "pause"):
            raise ValueError(f'approvals is "tell" or "pause", and not {approvals!r}.')
        self.has_pauses = approvals == "pause"
        self._plugin, self._offline, self._stale_seconds = plugin, offline, stale_seconds
        self._by_key: dict[str, LocalTool] | None = None if self._tools else {}
        self._surfaces: caches.LruCache[_SessionKey, _LastSurface] = caches.LruCache(MAX_SURFACES)
        self._versions: dict[str, str] = {}
        self._declared_at = 0.0
        self._last_options: dict[str, Mapping[str, Any] | None] = {}
        self._unsent: collections.deque[_Unsent] = collections.deque(maxlen=MAX_UNSENT)

    async def find(self, key: str) -> LocalTool | None:
        """Return the local tool with this key, by which models call it; None if there is none."""
        tool: LocalTool | None = await exchanges.run(self.connection, self._find(key))
        return tool

    def blocking_find(self, key: str) -> LocalTool | None:
        """Return the local tool with this key, in a thread that may block."""
        tool: LocalTool | None = exchanges.run_blocking(self.connection.blocking(), self._find(key))
        return tool

    async def surface(
        self, run: protocol.Run, *, message: str | None = None, **more: Any
    ) -> protocol.Document:
        """Return the current surface. If Toolbelt cannot be reached, return the last known one, with ``stale``.

        ``more`` is passed to the connection.
        """
        document: protocol.Document = await exchanges.run(self.connection, self._fetch(run, message, more))
        return document

    def blocking_surface(
        self, run: protocol.Run, *, message: str | None = None, **more: Any
    ) -> protocol.Document:
        """Return the current surface, in a thread that may block."""
        document: protocol.Document = exchanges.run_blocking(
            self.connection.blocking(), self._fetch(run, message, more)
        )
        return document

    async def check(self, run: protocol.Run, key: str, arguments: Any, **more: Any) -> protocol.Document:
        """Check what would happen to a call. ``more`` is passed to the connection."""
        return await self.connection.check(run, key, arguments, self._versions.get(key, ""), **more)

    def blocking_check(self, run: protocol.Run, key: str, arguments: Any, **more: Any) -> protocol.Document:
        """Check what would happen to a call, in a thread that may block."""
        connection = self.connection.blocking()
        return connection.check(run, key, arguments, self._versions.get(key, ""), **more)

    async def waiting(
        self, run: protocol.Run, key: str, arguments: Any, **more: Any
    ) -> dict[str, Any] | None:
        """Return the question to people for which a call pauses the run, and ask them; None if it does not pause.

        An error is left to the call.
        """
        with contextlib.suppress(errors.ToolbeltError):
            if self.has_pauses:
                return _question(key, await self.check(run, key, arguments, ask=True, **more))
        return None

    def blocking_waiting(
        self, run: protocol.Run, key: str, arguments: Any, **more: Any
    ) -> dict[str, Any] | None:
        """Return the question for which a call pauses the run, in a thread that may block."""
        with contextlib.suppress(errors.ToolbeltError):
            if self.has_pauses:
                return _question(key, self.blocking_check(run, key, arguments, ask=True, **more))
        return None

    def admitted(self, run: protocol.Run, key: str, arguments: Any, *, conversation: str = "") -> Admitted:
        """Return a context manager that has a call admitted, and reports its outcome at the end of the block.

        ``conversation`` is the token of the conversation that the call is made in.
        """
        return Admitted(
            self.connection,
            lambda: self._admit(run, key, arguments, conversation),
            lambda call_id, outcome, begun: self._report((run, key, arguments), call_id, outcome, begun),
            self._pauses,
        )

    def _find(self, key: str) -> exchanges.Exchange:
        # An interrupted run may continue with a call, in a process that has not requested a surface.
        try:
            return (yield from self._declare()).get(key)
        except (protocol.Unreachable, errors.Unavailable):
            return None

    def _declare(self) -> exchanges.Exchange:
        is_first = self._by_key is None
        if is_first or (self._tools and time.monotonic() - self._declared_at >= DECLARED_AGAIN):
            try:
                declared = yield "declare", (self._plugin, [tool.declaration() for tool in self._tools]), {}
            except errors.ToolbeltError:
                if is_first:
                    raise
                return self._by_key
            self._declared_at = time.monotonic()
            versions = declared.get("versions", {})
            self._versions = {
                declared["keys"][name]: version
                for name, version in versions.items()
                if name in declared["keys"]
            }
            self._by_key = {declared["keys"][tool.name]: tool for tool in self._tools}
            if is_first:
                self._warn(declared)
        return self._by_key

    def _warn(self, declared: protocol.Document) -> None:
        """Write one warning to the log if an operator has to decide about some of the tools."""
        states = {"waiting for a review": "waiting", "rejected or blocked": "withdrawn"}
        found = [f"{words}: {', '.join(declared[key])}" for words, key in states.items() if declared.get(key)]
        if found:
            message = (
                "Agents do not have all tools of the plugin %s as this program has them (%s). To see why: %s"
            )
            _log.warning(message, self._plugin, "; ".join(found), declared.get("show", ""))

    def _fetch(self, run: protocol.Run, message: str | None, more: Mapping[str, Any]) -> exchanges.Exchange:
        session_key = (run.session, run.subagent)
        try:
            yield from self._declare()
            document = yield "surface", (run,), {"message": message, **more}
        except protocol.Unreachable as error:
            return self._last_known(session_key, error)
        except errors.Unavailable as error:
            return self._last_known(session_key, error)
        if self._by_key:
            sent = () if document["tool_choice"] == "none" else document["active_tools"]
            self._surfaces.put(session_key, _LastSurface(document, {*sent} & self._by_key.keys()))
            yield from self._send_unsent()
        return document

    def _last_known(self, session_key: _SessionKey, error: errors.ToolbeltError) -> protocol.Document:
        last_surface = self._current(session_key)
        if last_surface is None:
            raise error
        _log.warning("%s The last known surface is used.", error)
        # What a conversation was to be told then is not what it must be told now.
        known = {name: value for name, value in last_surface.document.items() if name != "append"}
        return {**known, "directive": None, "stale": True}

    def _current(self, session_key: _SessionKey) -> _LastSurface | None:
        last_surface = self._surfaces.get(session_key)
        return (
            last_surface
            if last_surface and time.monotonic() - last_surface.at < self._stale_seconds
            else None
        )

    def _admit(self, run: protocol.Run, key: str, arguments: Any, conversation: str) -> exchanges.Exchange:
        try:
            version = self._versions.get(key)
            told = {"conversation": conversation} if conversation else {}
            answer = yield "admit", (run, key, arguments, *([version] if version else [])), told
        except (protocol.Unreachable, errors.Unavailable):
            return self._admit_offline(run, key)
        except errors.ToolbeltError as error:
            return {"is_error": True, "code": error.code, "message": str(error)}
        if not answer["is_error"]:
            self._last_options[key] = answer["options"]
        elif answer["code"] != "invalid-arguments":
            # A surface from before the refusal no longer allows the tool.
            for session_key in self._surfaces:
                if last_surface := self._surfaces.get(session_key):
                    last_surface.allowed.discard(key)
        return answer

    def _admit_offline(self, run: protocol.Run, key: str) -> protocol.Document:
        last_surface = self._current((run.session, run.subagent))
        if self._offline == "allow" and last_surface is not None and key in last_surface.allowed:
            return {"is_error": False, "call_id": None, "options": self._last_options.get(key)}
        message = (
            f"Toolbelt cannot be reached, so the call of {key} was not admitted. It did not run. Try later."
        )
        return {"is_error": True, "code": "unreachable", "message": message}

    def _report(
        self,
        call: tuple[protocol.Run, str, Any],
        call_id: str | None,
        outcome: protocol.Outcome,
        begun: float,
    ) -> exchanges.Exchange:
        if call_id is None:
            unsent = _Unsent(("record", (*call, outcome), {}), begun)
        else:
            unsent = _Unsent(("report", (call_id, outcome), {}))
        if len(self._unsent) == MAX_UNSENT:
            _log.warning("More than %d outcomes wait to be recorded: the oldest is dropped.", MAX_UNSENT)
        self._unsent.append(unsent)
        yield from self._send_unsent()

    def _send_unsent(self) -> exchanges.Exchange:
        for _ in range(min(len(self._unsent), BATCH_SIZE)):
            try:
                unsent = self._unsent.popleft()
            except IndexError:  # another thread sends them, too
                return
            try:
                yield unsent.now()
            except (protocol.Unreachable, errors.Unavailable):
                self._unsent.appendleft(unsent)
                return
            except errors.ToolbeltError as error:
                _log.warning("The outcome of a call was not recorded: %s", error)


def _question(key: str, checked: protocol.Document) -> dict[str, Any] | None:
    """Return what a program shows while a call waits for people, as JSON; None if it does not wait."""
    if checked["would"] != "wait" or "approval" not in checked:
        return None
    approval = checked["approval"]
    return {
        "toolbelt_approval": approval["id"],
        "tool": key,
        "message": checked["message"],
        "expires": approval["expires"],
    }
