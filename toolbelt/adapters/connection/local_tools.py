"""Tools that the agent's own program runs: declared once, admitted before each run, and reported afterwards.

``LocalTools`` is a connection that also does this, so that the framework integrations only add how their framework runs
a tool. If Toolbelt cannot be reached, it returns the last known surface for a while, and either refuses the calls of
local tools or, if the program's owner allows it, runs those that the surface has and records them later.
"""

from __future__ import annotations

import asyncio
import collections
import contextvars
import json
import logging
import time
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal

from toolbelt.adapters.connection import protocol
from toolbelt.core import caches, errors

Offline = Literal["refuse", "allow"]

# How long the last known surface is used while Toolbelt cannot be reached, in seconds.
STALE_SECONDS = 300.0
# How many conversations' surfaces are remembered, and how many outcomes wait until Toolbelt can be reached.
MAX_KNOWN, MAX_UNSENT = 256, 1000
# How many of these are sent at a time, because a model waits meanwhile.
AT_ONCE = 20

_log = logging.getLogger(__name__)
_options: contextvars.ContextVar[Mapping[str, Any] | None] = contextvars.ContextVar(
    "toolbelt_options", default=None
)

# A request to the connection: the name of its method, and the arguments.
_Request = tuple[str, tuple[Any, ...], Mapping[str, Any]]
_Exchange = Generator[_Request, Any, Any]
_Place = tuple[str | None, str | None]


def options() -> Mapping[str, Any] | None:
    """Return the options of the admitted call that is running here; None if its source has none."""
    return _options.get()


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


class NotAdmittedError(Exception):
    """A call may not run. ``document`` is the refusal, for the model."""

    def __init__(self, document: protocol.Document) -> None:
        self.document = document
        super().__init__(f"{document['code']}: {document['message']}")


@dataclass(slots=True)
class _Known:
    """The last surface of a conversation, and which local tools may run by it."""

    document: protocol.Document
    allowed: set[str]
    at: float = field(default_factory=time.monotonic)


@dataclass(frozen=True, slots=True)
class _Unsent:
    """An outcome that is sent when Toolbelt can be reached again; ``begun`` is that of a call to record."""

    request: _Request
    begun: float | None = None

    def now(self) -> _Request:
        method, args, more = self.request
        return method, args if self.begun is None else (*args, time.monotonic() - self.begun), more


class LocalTools:
    """A connection for an agent whose program also runs tools of its own.

    plugin: The plugin that the tools are declared for; an operator has created it and named this agent.
    offline: What happens to calls of these tools while Toolbelt cannot be reached: "refuse" them, or "allow" those that
        the last known surface has. These are recorded later.
    stale_seconds: How long the last known surface is used then. 0: the error is raised at once.
    """

    def __init__(
        self,
        connection: protocol.Connection,
        tools: Iterable[LocalTool] = (),
        *,
        plugin: str = "",
        offline: Offline = "refuse",
        stale_seconds: float = STALE_SECONDS,
    ) -> None:
        self.connection, self._tools = connection, tuple(tools)
        if self._tools and not plugin:
            raise ValueError("Local tools need the name of the plugin that they are declared for: plugin=...")
        if offline not in ("refuse", "allow"):
            raise ValueError(f'offline is "refuse" or "allow", and not {offline!r}.')
        self._plugin, self._offline, self._stale_seconds = plugin, offline, stale_seconds
        self._by_key: dict[str, LocalTool] | None = None
        self._known: caches.LruCache[_Place, _Known] = caches.LruCache(MAX_KNOWN)
        self._last_options: dict[str, Mapping[str, Any] | None] = {}
        self._unsent: collections.deque[_Unsent] = collections.deque(maxlen=MAX_UNSENT)
        self._reporting: set[asyncio.Task[Any]] = set()

    def find(self, key: str) -> LocalTool | None:
        """Return the local tool with this key, which models call it by."""
        return (self._by_key or {}).get(key)

    async def surface(self, run: protocol.Run, *, message: str | None = None) -> protocol.Document:
        """Return the current surface. If Toolbelt cannot be reached, return the last known one, with ``stale``."""
        document: protocol.Document = await self._run(self._fetch(run, message))
        return document

    def blocking_surface(self, run: protocol.Run, *, message: str | None = None) -> protocol.Document:
        """Return the current surface, in a thread that may block."""
        document: protocol.Document = self._run_blocking(self._fetch(run, message))
        return document

    def admitted(self, run: protocol.Run, key: str, arguments: Any) -> Admitted:
        """Return a context manager that has a call admitted, and reports its outcome at the end of the block."""
        return Admitted(self, run, key, arguments)

    def _fetch(self, run: protocol.Run, message: str | None) -> _Exchange:
        place = (run.session, run.subagent)
        try:
            if self._by_key is None and self._tools:
                declared = yield "declare", (self._plugin, [tool.declaration() for tool in self._tools]), {}
                self._by_key = {declared["keys"][tool.name]: tool for tool in self._tools}
            document = yield "surface", (run,), {"message": message}
        except protocol.Unreachable as error:
            return self._last_known(place, error)
        except errors.Unavailable as error:
            return self._last_known(place, error)
        if self._by_key:
            sent = () if document["tool_choice"] == "none" else document["active_tools"]
            self._known.put(place, _Known(document, {*sent} & self._by_key.keys()))
            yield from self._send_unsent()
        return document

    def _last_known(self, place: _Place, error: errors.ToolbeltError) -> protocol.Document:
        known = self._current(place)
        if known is None:
            raise error
        _log.warning("%s The last known surface is used.", error)
        return {**known.document, "directive": None, "stale": True}

    def _current(self, place: _Place) -> _Known | None:
        known = self._known.get(place)
        return known if known and time.monotonic() - known.at < self._stale_seconds else None

    def _admit(self, run: protocol.Run, key: str, arguments: Any) -> _Exchange:
        try:
            answer = yield "admit", (run, key, arguments), {}
        except (protocol.Unreachable, errors.Unavailable):
            return self._admit_offline(run, key)
        except errors.ToolbeltError as error:
            return {"is_error": True, "code": error.code, "message": str(error)}
        if not answer["is_error"]:
            self._last_options[key] = answer["options"]
        elif answer["code"] != "invalid-arguments":
            # A surface from before the refusal no longer allows the tool.
            for place in self._known:
                if known := self._known.get(place):
                    known.allowed.discard(key)
        return answer

    def _admit_offline(self, run: protocol.Run, key: str) -> protocol.Document:
        known = self._current((run.session, run.subagent))
        if self._offline == "allow" and known is not None and key in known.allowed:
            return {"is_error": False, "call_id": None, "options": self._last_options.get(key)}
        message = (
            f"Toolbelt cannot be reached, so the call of {key} was not admitted. It did not run. Try later."
        )
        return {"is_error": True, "code": "unreachable", "message": message}

    def _report(self, call: Admitted, call_id: str | None, outcome: protocol.Outcome) -> _Exchange:
        if call_id is None:
            request: _Request = "record", (call.run, call.key, call.arguments, outcome), {}
            unsent = _Unsent(request, call.begun)
        else:
            unsent = _Unsent(("report", (call_id, outcome), {}))
        if len(self._unsent) == MAX_UNSENT:
            _log.warning("More than %d outcomes wait to be recorded: the oldest is dropped.", MAX_UNSENT)
        self._unsent.append(unsent)
        yield from self._send_unsent()

    def _send_unsent(self) -> _Exchange:
        for _ in range(min(len(self._unsent), AT_ONCE)):
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

    async def _run(self, exchange: _Exchange) -> Any:
        answer: Any = None
        error: errors.ToolbeltError | None = None
        while True:
            try:
                method, args, more = exchange.throw(error) if error else exchange.send(answer)
            except StopIteration as done:
                return done.value
            answer = error = None
            try:
                answer = await getattr(self.connection, method)(*args, **more)
            except errors.ToolbeltError as raised:
                error = raised

    def _run_blocking(self, exchange: _Exchange) -> Any:
        answer: Any = None
        error: errors.ToolbeltError | None = None
        while True:
            try:
                method, args, more = exchange.throw(error) if error else exchange.send(answer)
            except StopIteration as done:
                return done.value
            answer = error = None
            try:
                answer = getattr(self.connection.blocking(), method)(*args, **more)
            except errors.ToolbeltError as raised:
                error = raised


class Admitted:
    """A call that the program runs within a block: ``with`` in threads that may block, ``async with`` on event loops.

    Raise NotAdmittedError if the call is refused; the block does not run then. An exception of the block is reported by
    its kind, and raised again.
    """

    def __init__(self, local: LocalTools, run: protocol.Run, key: str, arguments: Any) -> None:
        self._local, self.run, self.key, self.arguments = local, run, key, arguments
        self.begun = 0.0
        self._call_id: str | None = None
        self._token: contextvars.Token[Mapping[str, Any] | None] | None = None
        self._failure: str | None = None
        self._result_bytes = 0

    def result(self, value: Any) -> Any:
        """Note the size of the tool's result for the record, and return the result."""
        self._result_bytes = _size(value)
        return value

    def failed(self, message: str) -> None:
        """Note that the tool failed although it raised no exception."""
        self._failure = message

    def __enter__(self) -> Admitted:
        self._begin(self._local._run_blocking(self._admission()))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        try:
            self._local._run_blocking(self._end(error))
        except Exception:
            # The tool has run, and its result counts.
            _log.exception("The outcome of a call of %s was not reported.", self.key)

    async def __aenter__(self) -> Admitted:
        self._begin(await self._local._run(self._admission()))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        # A cancelled call is reported, too.
        task = asyncio.ensure_future(self._local._run(self._end(error)))
        self._local._reporting.add(task)
        task.add_done_callback(self._local._reporting.discard)
        try:
            await asyncio.shield(task)
        except Exception:
            _log.exception("The outcome of a call of %s was not reported.", self.key)

    def _admission(self) -> _Exchange:
        return self._local._admit(self.run, self.key, self.arguments)

    def _begin(self, answer: protocol.Document) -> None:
        if answer["is_error"]:
            raise NotAdmittedError(answer)
        self._call_id = answer["call_id"]
        self._token = _options.set(answer["options"])
        self.begun = time.monotonic()

    def _end(self, error: BaseException | None) -> _Exchange:
        if self._token is not None:
            _options.reset(self._token)
        message = self._failure or ""
        if error is not None:
            message = f"{type(error).__name__}: {error}".removesuffix(": ")
        outcome = protocol.Outcome(
            code="tool-failed" if error is None and self._failure is not None else protocol.outcome_of(error),
            error=message,
            duration_ms=round((time.monotonic() - self.begun) * 1000),
            result_bytes=self._result_bytes,
        )
        return self._local._report(self, self._call_id, outcome)


def _size(value: Any) -> int:
    """Return the size of a result in bytes: of a text as it is, of anything else as JSON; 0 for what is neither."""
    try:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return 0
    return len(text.encode(errors="replace"))
