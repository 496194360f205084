"""Is this server there, what does it offer, and what does it answer? One live connection, kept as long as it lasts.

The rules, before the code:

1. Nothing is connected before it is needed. The first who needs it waits, and all who come meanwhile wait with them.
2. A connection that ended is noticed at once, and whoever waits for an answer is told at once. Who comes next connects
   anew. A call whose session the server refuses, as it was restarted, has run nothing: it is made again, once.
3. A server that cannot be reached is left alone for a while, which grows with each failure and is never twice the
   same. Who comes in that while is told at once. An operator's refresh does not wait for it to pass, and an answer to
   another process ends it.
4. Whenever a connection is made, the tools are listed first: a server that came back may be another one.
5. A server that tells of changes again and again is listed ever more seldom, until it is quiet for a while.
6. Every wait has a limit, which begins again where a call tells of its progress; and whoever gives up takes their own
   request back, and nobody else's.

Everything here runs on one event loop, in which no plugin's code blocks; two things between two awaits are one.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from toolbelt.core import connections, errors
from toolbelt.plugins import background, contract
from toolbelt.plugins.upstream import changes, importing, last_check, limits, lives, opening, paging, pauses

if TYPE_CHECKING:
    import mcp

Told = Callable[[importing.Answer], None]


class Progress(Protocol):
    """Hears how far a call has come, on the connections' event loop: of a total if that is known, in words if any."""

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None: ...


def _extending(limit: asyncio.Timeout, seconds: float, caller: Progress | None) -> Progress:
    """Return what hears of progress: it lets the limit begin again, and passes on what it hears."""

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        # What comes late finds a limit that is over.
        with contextlib.suppress(RuntimeError):
            limit.reschedule(asyncio.get_running_loop().time() + seconds)
        if caller is not None:
            await caller(progress, total, message)

    return heard


class Server:
    """One server. ``environ`` gives the variables that its connection names; ``told`` hears each list unasked for, and
    why there is none where a call cannot reach it.

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
        self._life: lives.Life | None = None
        self._retired: set[lives.Life] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._answer: importing.Answer | None = None
        self._listing: asyncio.Task[importing.Answer] | None = None
        self._is_stale = False
        self._closed = False
        self._error, self._stderr = "", ""
        self._away, self._relists = pauses.Away(self._limits), pauses.Relists(self._limits)
        self._late = 0
        self._sleep = sleep

    def status(self) -> lives.Status:
        """Say how things are; for any thread."""
        answer, life = self._answer, self._life
        pause = self._away.left()
        state: lives.State = "idle"
        if self._closed:
            state = "closed"
        elif life is not None:
            state = "connecting" if life.client is None else "open"
        elif pause:
            state = "waiting"
        return lives.Status(
            state=state,
            protocol=answer.protocol if answer else "",
            server=answer.server if answer else "",
            error=self._error,
            stderr=(life.stderr.text() if life else "") or self._stderr,
            pause=pause,
        )

    def answered_elsewhere(self, at: float) -> None:
        """Take note that the server answered another process, in seconds of the clock on the wall; for any thread."""
        self._away.answered_elsewhere(at)

    async def tools(self) -> importing.Answer:
        """Give what the server offers, as it last said."""
        await self._connected(announce=True)
        if self._answer is None:
            raise lives.Unreachable(self._error or "The server went away.")
        return self._answer

    async def ask(self) -> importing.Answer:
        """Ask the server for its tools now. An answer with an error where that cannot be; only Closed is raised."""
        try:
            was_open = self._life is not None
            self._away.cut_short()
            await self._connected(announce=False)
            if was_open:
                # One that was restarted does not know this connection any more: then another one is made.
                with contextlib.suppress(lives.Unreachable):
                    return await self._relisted()
            return await self.tools()
        except errors.ToolbeltError as error:
            if self._closed:
                raise lives.Closed from error
            return importing.Answer(error=str(error), stderr=self.status().stderr)

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        progress: Progress | None = None,
        check: background.Check | None = None,
        expected: Callable[[importing.Answer], object] = lambda listed: None,
    ) -> Mapping[str, Any]:
        """Call a tool by the server's own name for it, and return MCP's answer.

        The server's time begins again with each progress that it tells; how long that may go on is the caller's to say.
        ``expected`` is given what the server listed on the connection that the call takes, and raises where that is
        not what the caller counts on. ``check`` is awaited directly before the request is written: over HTTP once the
        TCP or TLS connection stands, over a process's pipes when the message is handed to the pipe. Raises what these
        raise, :class:`lives.Unreachable`, TimeoutError, and :class:`contract.ToolError` for what the server refuses.
        """
        request = tool, arguments, progress, check, expected
        try:
            return await self._attempt(*request)
        except lives.SessionLost:
            # It has run nothing. As MCP has it, a new session begins, which is listed and judged like any other.
            return await self._attempt(*request)

    async def _attempt(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        progress: Progress | None,
        check: background.Check | None,
        expected: Callable[[importing.Answer], object],
    ) -> Mapping[str, Any]:
        life = await self._connected(announce=True)
        if self._answer is not None:
            expected(self._answer)
        import mcp_types
        import pydantic
        from mcp.shared.exceptions import MCPError

        request = mcp_types.CallToolRequest(
            params=mcp_types.CallToolRequestParams(name=tool, arguments=dict(arguments))
        )
        last = last_check.LastCheck(check)
        if self.reached.command:
            await last.make()
        # Restored before this returns, and read by the transport in the meantime.
        token = last_check.CURRENT.set(last)
        life.calls += 1
        try:
            async with asyncio.timeout(self.reached.timeout) as limit:
                # Not by the client's own call_tool: that checks the answer against the server's own schema, whose
                # patterns may take for ever, on the loop that all servers share.
                result = await life.at_hand().session.send_request(
                    request,
                    mcp_types.CallToolResult,
                    progress_callback=_extending(limit, self.reached.timeout, progress),
                )
        except TimeoutError:
            self._late += 1
            if self._late >= self._limits.late:
                self._end(life)
            raise
        except pydantic.ValidationError as error:
            raise contract.ToolError("The server answered what is no result of a tool.") from error
        except Exception as error:
            if last.refusal is not None:
                raise last.refusal from None
            if last.is_session_refused:
                self._retire(life)
                raise lives.SessionLost(life.why(error, self.reached)) from error
            refusal: errors.ToolbeltError = lives.Unreachable(life.why(error, self.reached))
            if isinstance(error, MCPError):
                refusal = life.refusal(error, self.reached)
            if isinstance(refusal, lives.Unreachable):
                self._end(life)
            raise refusal from error
        finally:
            last_check.CURRENT.reset(token)
            life.calls -= 1
            if life.is_retired and not life.calls:
                life.leave.set()
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
        for retired in self._retired:
            retired.leave.set()
        if self._tasks:
            await asyncio.wait([*self._tasks], timeout=self._limits.close)
        for task in self._tasks:
            task.cancel()

    async def _connected(self, *, announce: bool) -> lives.Life:
        if self._closed:
            raise lives.Closed
        life = self._life
        if life is None:
            life = self._begin(announce)
        if life.client is None:
            # Who gives up does not take the others' connection along.
            await asyncio.shield(life.opened)
        return life

    def _begin(self, announce: bool) -> lives.Life:
        if pause := self._away.left():
            raise lives.Unreachable(f"{self._error} It is tried again in {max(1, round(pause))} s.")
        life = lives.Life.begin()
        # In an empty context: what the first caller has bound to its own is no business of the server's.
        life.task = asyncio.get_running_loop().create_task(
            self._live(life, announce), context=contextvars.Context()
        )
        self._tasks.add(life.task)
        life.task.add_done_callback(self._tasks.discard)
        self._life = life
        return life

    def _end(self, life: lives.Life) -> None:
        """Let nobody else come to this connection, and let it go."""
        life.leave.set()
        if self._life is life:
            self._life = None
            self._stderr = life.stderr.text()

    def _retire(self, life: lives.Life) -> None:
        """Let nobody else come to this connection, and let it go once each of its calls has its own answer."""
        life.is_retired = True
        if self._life is life:
            self._error = life.why(None, self.reached)
        if not life.calls:
            self._end(life)
        elif self._life is life:
            self._life = None
            self._retired.add(life)

    async def _live(self, life: lives.Life, announce: bool) -> None:
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
            self._retired.discard(life)
            if self._closed:
                refusal: lives.Unreachable = lives.Closed()
            else:
                refusal = lives.Unreachable(life.why(error, self.reached))
                # Of one that another has followed already, nobody need know.
                self._error = str(refusal) if self._life is None else self._error
            if not life.opened.done():
                self._away.failed()
                if announce and not self._closed:
                    self._told(importing.Answer(error=str(refusal), stderr=life.stderr.text()))
                life.opened.set_exception(refusal)

    @contextlib.asynccontextmanager
    async def _opened(self, life: lives.Life) -> AsyncIterator[mcp.Client]:
        client = opening.client(
            self.reached,
            self._environ,
            life,
            ended=lambda: self._end(life),
            session_over=lambda: self._retire(life),
            heard=self._heard,
        )
        async with contextlib.AsyncExitStack() as stack:
            async with asyncio.timeout(self.reached.timeout):
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
        self._relists.listed()
        if listing.cancelled():
            return
        if listing.exception() is None:
            self._told(listing.result())
        if self._is_stale:
            self._changed()

    async def _relisted_in_turn(self, life: lives.Life) -> importing.Answer:
        pause = self._relists.next()
        if pause > 0:
            await self._sleep(pause)
        if self._life is not life:
            # The next connection begins with a list of its own.
            raise lives.Unreachable("The server went away.")
        return await self._relisted()

    async def _relisted(self) -> importing.Answer:
        life = await self._connected(announce=False)
        self._is_stale = False
        try:
            async with asyncio.timeout(self.reached.timeout):
                self._answer = await self._listed(life.at_hand(), life)
        except Exception as error:
            # What cannot even list is of no use to callers either: who comes next connects anew.
            self._end(life)
            raise lives.Unreachable(life.why(error, self.reached)) from error
        return self._answer

    async def _listed(self, client: mcp.Client, life: lives.Life) -> importing.Answer:
        found = await paging.walk(client, self._limits)
        self._away.forget()
        return dataclasses.replace(found, stderr=life.stderr.text())
