"""Is this server there, what does it offer, and what does it answer? One live connection, kept as long as it lasts.

The rules, before the code:

1. Nothing is connected before it is needed. The first who needs it waits, and all who come meanwhile wait with them.
2. A connection that ended is noticed at once, and whoever waits for an answer is told at once. Who comes next connects
   anew.
3. A server that cannot be reached is left alone for a while, which grows with each failure and is never twice the
   same. Who comes in that while is told at once. An operator's refresh does not wait for it to pass.
4. Whenever a connection is made, the tools are listed first: a server that came back may be another one.
5. A server that tells of changes again and again is listed ever more seldom, until it is quiet for a while.
6. Every wait has a limit, and whoever gives up takes their own request back, and nobody else's.

Everything here runs on one event loop, in which no plugin's code blocks; two things between two awaits are one.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import dataclasses
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import toolbelt
from toolbelt.core import connections, errors
from toolbelt.plugins import contract, variables
from toolbelt.plugins.upstream import changes, cleaning, importing, limits, paging, reasons, tail

if TYPE_CHECKING:
    import mcp

Limits = limits.Limits
State = Literal["idle", "connecting", "open", "waiting", "closed"]
Told = Callable[[importing.Answer], None]

# It does not know us, or something in front of it does not reach it: with the next connection that may be otherwise.
_AWAY = frozenset({401, 403, 502, 503, 504})
INSTALL = "The client of MCP servers is not installed: run `pip install 'toolbelt[mcp]'` for it."


class Progress(Protocol):
    """Hears how far a call has come, on the connections' event loop: of a total if that is known, in words if any."""

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None: ...


class Unreachable(errors.ToolbeltError):
    """The operator's to put right, or the server's owner's: it cannot be reached, or went away before it answered."""

    code = "tool-unavailable"


class Closed(Unreachable):
    """Nobody's to put right: the connection was ended on this side, as the process ends or the server has another."""

    def __init__(self) -> None:
        super().__init__("The connection was closed.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """How a connection is now. ``error`` is why the last one failed; ``pause`` how long there is none, in seconds."""

    state: State = "idle"
    protocol: str = ""
    server: str = ""
    error: str = ""
    stderr: str = ""
    pause: float = 0.0


@dataclass(slots=True, kw_only=True, eq=False)
class _Life:
    """One connection from its beginning to its end: made and held and closed by one task, as the client wants it."""

    opened: asyncio.Future[mcp.Client]
    leave: asyncio.Event
    stderr: tail.Tail
    http_status: int = 0
    client: mcp.Client | None = None
    task: asyncio.Task[None] | None = None
    wrong: Unreachable | None = None

    def went(self, wrong: Exception) -> None:
        """Remember why the server was given up."""
        self.wrong = Unreachable(str(wrong))

    def saw(self, status: int) -> None:
        """Remember with which status the server answered last."""
        self.http_status = status


class Server:
    """One server. ``environ`` gives the variables that its connection names; ``told`` hears each list unasked for.

    ``sleep`` passes the pauses between lists that the server itself brings about.
    """

    def __init__(
        self,
        reached: connections.Connection,
        *,
        environ: Mapping[str, str],
        told: Told = lambda answer: None,
        bounds: limits.Limits | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self.reached = reached
        self._environ, self._told, self._limits = environ, told, bounds or limits.Limits()
        # The one that counts, and those that are on their way out.
        self._life: _Life | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._answer: importing.Answer | None = None
        self._listing: asyncio.Task[importing.Answer] | None = None
        self._is_stale = False
        self._closed = False
        self._error, self._stderr = "", ""
        self._failures, self._not_before = 0, 0.0
        self._late = 0
        self._sleep = sleep
        self._relistings, self._relisted_at = 0, 0.0

    def status(self) -> Status:
        """Say how things are; for any thread."""
        answer, life = self._answer, self._life
        pause = max(0.0, self._not_before - time.monotonic())
        state: State = "idle"
        if self._closed:
            state = "closed"
        elif life is not None:
            state = "connecting" if life.client is None else "open"
        elif pause:
            state = "waiting"
        return Status(
            state=state,
            protocol=answer.protocol if answer else "",
            server=answer.server if answer else "",
            error=self._error,
            stderr=(life.stderr.text() if life else "") or self._stderr,
            pause=pause,
        )

    async def tools(self) -> importing.Answer:
        """Give what the server offers, as it last said."""
        await self._connected(announce=True)
        if self._answer is None:
            raise Unreachable(self._error or "The server went away.")
        return self._answer

    async def ask(self) -> importing.Answer:
        """Ask the server for its tools now. An answer with an error where that cannot be; only Closed is raised."""
        try:
            was_open = self._life is not None
            self._not_before = 0.0
            await self._connected(announce=False)
            return await (self._relisted() if was_open else self.tools())
        except errors.ToolbeltError as error:
            if self._closed:
                raise Closed from error
            return importing.Answer(error=str(error), stderr=self.status().stderr)

    async def call(
        self, tool: str, arguments: Mapping[str, Any], *, progress: Progress | None = None
    ) -> Mapping[str, Any]:
        """Call a tool by the server's own name for it, and give MCP's answer.

        Raises :class:`Unreachable`, TimeoutError, and :class:`contract.ToolError` for what the server refuses.
        """
        life = await self._connected(announce=True)
        import mcp_types
        import pydantic
        from mcp.shared.exceptions import MCPError

        request = mcp_types.CallToolRequest(
            params=mcp_types.CallToolRequestParams(name=tool, arguments=dict(arguments))
        )
        try:
            async with asyncio.timeout(self.reached.timeout):
                # Not by the client's own call_tool: that checks the answer against the server's own schema, whose
                # patterns may take for ever, on the loop that all servers share.
                result = await _client(life).session.send_request(
                    request, mcp_types.CallToolResult, progress_callback=progress
                )
        except TimeoutError:
            self._late += 1
            if self._late >= self._limits.late:
                self._end(life)
            raise
        except pydantic.ValidationError as error:
            raise contract.ToolError("The server answered what is no result of a tool.") from error
        except MCPError as error:
            raise self._refusal(life, error) from error
        except Exception as error:
            self._end(life)
            raise Unreachable(self._why(life, error)) from error
        self._late = 0
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)

    async def close(self) -> None:
        """End the connection for good, and wait until its process is gone; it is not waited for long."""
        self._closed = True
        if self._listing is not None:
            self._listing.cancel()
        life = self._life
        if life is not None:
            self._end(life)
            if life.client is None and life.task is not None:
                life.task.cancel()
        if self._tasks:
            await asyncio.wait([*self._tasks], timeout=self._limits.close)
        for task in self._tasks:
            task.cancel()

    async def _connected(self, *, announce: bool) -> _Life:
        if self._closed:
            raise Closed
        life = self._life
        if life is None:
            life = self._begin(announce)
        if life.client is None:
            # Who gives up does not take the others' connection along.
            await asyncio.shield(life.opened)
        return life

    def _begin(self, announce: bool) -> _Life:
        pause = self._not_before - time.monotonic()
        if pause > 0:
            raise Unreachable(f"{self._error} It is tried again in {max(1, round(pause))} s.")
        loop = asyncio.get_running_loop()
        life = _Life(opened=loop.create_future(), leave=asyncio.Event(), stderr=tail.Tail())
        # If all who wait for it give up, nobody asks what became of it.
        life.opened.add_done_callback(lambda opened: opened.cancelled() or opened.exception())
        # In an empty context: what the first caller has bound to its own is no business of the server's.
        life.task = loop.create_task(self._live(life, announce), context=contextvars.Context())
        self._tasks.add(life.task)
        life.task.add_done_callback(self._tasks.discard)
        self._life = life
        return life

    def _end(self, life: _Life) -> None:
        """Let nobody else come to this connection, and let it go."""
        life.leave.set()
        if self._life is life:
            self._life = None
            self._stderr = life.stderr.text()

    async def _live(self, life: _Life, announce: bool) -> None:
        error: BaseException | None = None
        try:
            async with self._opened(life) as client:
                life.client, self._error = client, ""
                life.opened.set_result(client)
                if announce and self._answer is not None:
                    self._told(self._answer)
                await life.leave.wait()
        except (Exception, asyncio.CancelledError) as raised:
            error = raised
        finally:
            self._end(life)
            if self._closed:
                refusal: Unreachable = Closed()
            else:
                refusal = Unreachable(self._why(life, error))
                # Of one that another has followed already, nobody need know.
                self._error = str(refusal) if self._life is None else self._error
            if not life.opened.done():
                self._pause()
                life.opened.set_exception(refusal)

    def _pause(self) -> None:
        """Leave a server alone that could not be reached."""
        self._failures += 1
        longest = min(self._limits.longest_pause, self._limits.first_pause * 2 ** (self._failures - 1))
        # Not all that lost the same server come back at the same moment.
        self._not_before = time.monotonic() + longest * random.uniform(0.5, 1.0)  # noqa: S311

    @contextlib.asynccontextmanager
    async def _opened(self, life: _Life) -> AsyncIterator[mcp.Client]:
        try:
            import mcp
            import mcp_types

            from toolbelt.plugins.upstream import transports
        except ImportError as error:
            raise Unreachable(INSTALL) from error
        reached = self.reached

        def ended() -> None:
            self._end(life)

        if reached.command:
            env = self._filled(reached.env)
            transport = transports.process(reached, env, life.stderr, ended, life.went)
        else:
            headers = self._filled(reached.headers)
            url = self._filled({"url": reached.url})["url"]
            transport = transports.http(url, headers, reached.timeout, life.saw, ended)
        client = mcp.Client(
            transport,
            cache=None,
            client_info=mcp_types.Implementation(name="toolbelt", version=toolbelt.__version__),
            message_handler=self._heard,
        )
        async with contextlib.AsyncExitStack() as stack:
            async with asyncio.timeout(reached.timeout):
                await stack.enter_async_context(client)
                await stack.enter_async_context(self._listening(client))
                self._answer = await self._listed(client, life)
            yield client

    @contextlib.asynccontextmanager
    async def _listening(self, client: mcp.Client) -> AsyncIterator[None]:
        """Listen for changes, where that has to be asked for."""
        begun = asyncio.Event()
        listening = asyncio.ensure_future(changes.listen(client, self._changed, self._limits, begun))
        try:
            # One that never answers this may well answer everything else.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._limits.subscribe):
                    await begun.wait()
            yield
        finally:
            listening.cancel()
            await asyncio.wait({listening})

    async def _heard(self, message: Any) -> None:
        import mcp_types

        if isinstance(message, mcp_types.ToolListChangedNotification):
            self._changed()

    def _changed(self) -> None:
        """List again and tell, once for however many changes that came meanwhile."""
        self._is_stale = True
        if self._listing is None and self._life is not None and not self._closed:
            self._listing = asyncio.ensure_future(self._relisted_in_turn(self._life))
            self._listing.add_done_callback(self._tell)

    def _tell(self, listing: asyncio.Task[importing.Answer]) -> None:
        self._listing = None
        self._relisted_at = time.monotonic()
        if listing.cancelled():
            return
        if listing.exception() is None:
            self._told(listing.result())
        if self._is_stale:
            self._changed()

    async def _relisted_in_turn(self, life: _Life) -> importing.Answer:
        pause = self._until_relisted()
        if pause > 0:
            await self._sleep(pause)
        if self._life is not life:
            # The next connection begins with a list of its own.
            raise Unreachable("The server went away.")
        return await self._relisted()

    def _until_relisted(self) -> float:
        """Say how long this list has to wait for those before it."""
        since = time.monotonic() - self._relisted_at
        longest = self._limits.longest_relist_pause
        if since >= longest:
            self._relistings = 0
        pause = 0.0
        if self._relistings:
            # Past 2**30 no pause grows any more.
            pause = min(longest, self._limits.relist_pause * 2 ** min(self._relistings - 1, 30)) - since
        self._relistings += 1
        return pause

    async def _relisted(self) -> importing.Answer:
        life = await self._connected(announce=False)
        self._is_stale = False
        try:
            async with asyncio.timeout(self.reached.timeout):
                self._answer = await self._listed(_client(life), life)
        except Exception as error:
            # What cannot even list is of no use to callers either: who comes next connects anew.
            self._end(life)
            raise Unreachable(self._why(life, error)) from error
        return self._answer

    async def _listed(self, client: mcp.Client, life: _Life) -> importing.Answer:
        found = await paging.walk(client, self._limits)
        self._failures = 0
        return dataclasses.replace(found, stderr=life.stderr.text())

    def _filled(self, texts: Mapping[str, str]) -> dict[str, str]:
        found, problems = {}, []
        for name, text in texts.items():
            found[name], wrong = variables.fill(text, self._environ)
            problems += wrong
        if problems:
            raise Unreachable(" ".join(problems))
        return found

    def _refusal(self, life: _Life, error: Any) -> errors.ToolbeltError:
        """Say what a refusal of a call is: the connection's, which ends with it, or the server's own."""
        import mcp_types

        is_over = error.code == mcp_types.CONNECTION_CLOSED or error.message == "Session terminated"
        if is_over or life.http_status in _AWAY:
            self._end(life)
            return Unreachable(self._why(life, error))
        return contract.ToolError(
            cleaning.text(error.message, reasons.LONGEST) or "The server refused the call."
        )

    def _why(self, life: _Life, error: BaseException | None) -> str:
        error, last = life.wrong or error, life.stderr.last()
        return reasons.said(error, self.reached, http_status=life.http_status, last=last)


def _client(life: _Life) -> mcp.Client:
    if life.client is None:
        raise Unreachable("The server went away.")
    return life.client
