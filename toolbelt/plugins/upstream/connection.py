"""A server, its current connection, and the requests on it.

The rules:

1. A server is connected to when it is first needed. All requests that arrive meanwhile wait for that connection.
2. The end of a connection is noticed immediately, and fails the requests that wait for an answer. The next request
   connects again. A call whose session the server refuses, after a restart, has run nothing: it is sent again, once.
3. After a failure to connect, there is a pause, which grows with each failure and is random. Requests during the pause
   fail immediately. An operator's refresh ends the pause, and so does an answer to another process.
4. On each new connection, the tools are listed first: the server may have changed.
5. The more often a server announces changes, the less often it is listed, until it is quiet for a while.
6. Every wait has a limit, which restarts with each progress notification of a call. If a request gives up, it alone is
   cancelled at the server.

Everything here runs on one event loop, in which no plugin's code blocks: what happens between two awaits is atomic.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import dataclasses
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from toolbelt.core import connections, errors
from toolbelt.plugins import background, contract
from toolbelt.plugins.upstream import (
    backoff,
    changes,
    client_features,
    importing,
    last_check,
    limits,
    live_connection,
    opening,
    paging,
    requests,
    results,
    updates,
)

if TYPE_CHECKING:
    import mcp

Told = Callable[[importing.Answer], None]


class Progress(Protocol):
    """Called with the progress of a call, on the connections' event loop; the total and the message are optional."""

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None: ...


def _extending(running_call: client_features.RunningCall, caller: Progress | None) -> Progress:
    """Return a progress callback that restarts the time limit, and calls the caller's."""

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        running_call.restart_limit()
        if caller is not None:
            await caller(progress, total, message)

    return heard


@functools.cache
def _as_sent() -> Any:
    """Return the type of an answer that is kept unchanged."""
    import pydantic

    return pydantic.TypeAdapter(dict[str, Any])


class Server:
    """One server. ``environ`` contains the variables that its connection names. ``told`` is called with each list that
    no one asked for, and with the error if a call cannot reach the server.

    ``changed`` is called with a list that the server announced as changed; by default it is ``told``. ``away`` is the
    pause after a failure to connect, which all connections to the same server share. ``sleep`` is used between lists
    and updates that the server itself causes. ``may_ask``: an operator lets the server ask users, which is announced.
    """

    def __init__(
        self,
        reached: connections.Connection,
        *,
        environ: Mapping[str, str],
        told: Told = lambda answer: None,
        changed: Told | None = None,
        away: backoff.Backoff | None = None,
        bounds: limits.Limits | None = None,
        may_ask: bool = False,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self.reached = reached
        self._environ, self._told, self._limits = environ, told, bounds or limits.Limits()
        self._told_of_change = changed or told
        # Whether the server gave the id of a session on the last connection; None before the first.
        self.has_session: bool | None = None
        # The current connection, and those that end after their last answer.
        self._live: live_connection.LiveConnection | None = None
        self._retired: set[live_connection.LiveConnection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._answer: importing.Answer | None = None
        self._listing: asyncio.Task[importing.Answer] | None = None
        self._is_stale = False
        self._closed = False
        self._error, self._stderr = "", ""
        self._away, self._relists = (
            away or backoff.Backoff(self._limits),
            backoff.RelistThrottle(self._limits),
        )
        self._late = 0
        self._followers = updates.Followers()
        self._sleep = sleep
        self._may_ask = may_ask

    def status(self) -> live_connection.Status:
        """Return the state of the connection. For any thread."""
        answer, live = self._answer, self._live
        pause = self._away.left()
        state: live_connection.State = "idle"
        if self._closed:
            state = "closed"
        elif live is not None:
            state = "connecting" if live.client is None else "open"
        elif pause:
            state = "waiting"
        return live_connection.Status(
            state=state,
            protocol=answer.protocol if answer else "",
            server=answer.server if answer else "",
            error=self._error,
            stderr=(live.stderr.text() if live else "") or self._stderr,
            pause=pause,
        )

    def answered_elsewhere(self, at: float) -> None:
        """Note that the server answered another process at this Unix time. For any thread."""
        self._away.answered_elsewhere(at)

    async def tools(self) -> importing.Answer:
        """Return what the server listed last."""
        await self._connected(announce=True)
        if self._answer is None:
            raise live_connection.UnreachableError(self._error or "The server has ended the connection.")
        return self._answer

    async def ask(self) -> importing.Answer:
        """List the server's tools again. Return an answer with an error if that fails; raise only ClosedError."""
        try:
            was_open = self._live is not None
            self._away.cut_short()
            await self._connected(announce=False)
            if was_open:
                # If the server was restarted, this connection is no longer valid, and another one is opened.
                with contextlib.suppress(live_connection.UnreachableError):
                    return await self._relisted()
            return await self.tools()
        except errors.ToolbeltError as error:
            if self._closed:
                raise live_connection.ClosedError from error
            return importing.Answer(error=str(error), stderr=self.status().stderr)

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        progress: Progress | None = None,
        check: background.Check | None = None,
        expected: Callable[[importing.Answer], object] = lambda listed: None,
        features: client_features.ClientFeatures | None = None,
        method: str = results.CALL,
    ) -> Mapping[str, Any]:
        """Call a tool by the server's own name for it, and return MCP's result.

        With another ``method`` of MCP, ``arguments`` are the parameters of that request (see :mod:`requests`).
        Following a resource lasts as long as the connection, and ``progress`` is called with each update.

        The server's time limit restarts with each progress notification; the caller limits the whole call. ``expected``
        is called with what the server listed on the connection of the call, and raises if the caller expects something
        else. ``check`` is awaited directly before the request is written: over HTTP once there is a TCP or TLS
        connection, for a process when the message is passed to the pipe. ``features`` are those of the client of the
        call; a result of type ``input_required`` is for a client that repeats the call.

        Raise what these raise, UnreachableError, TimeoutError, and contract.ToolError if the server refuses.
        """
        if method == requests.FOLLOW:
            await self._follow(arguments["uri"], progress, check, expected)
            return {}
        more: Mapping[str, Any] = features.resumed if features is not None else {}
        for _ in range(client_features.MAX_ROUNDS):
            request = tool, arguments, progress, check, expected, features, more, method
            try:
                try:
                    result = await self._attempt(*request)
                except live_connection.SessionLostError:
                    # It has run nothing. As MCP requires, a new session begins; it is listed and judged again.
                    result = await self._attempt(*request)
            except client_features.PagesRequiredError as error:
                return await self._handed_on(error, features)
            if result.get("resultType") != results.INPUT_REQUIRED:
                return result
            if features is None or not client_features.is_input_required(result):
                break
            try:
                if (handed_on := await features.hand_on(result)) is not None:
                    return handed_on
                more = await client_features.answers(result, features)
            except client_features.RefusedError:
                break
        raise contract.ToolError("The server asks for input that is not available here.")

    async def _handed_on(
        self, error: client_features.PagesRequiredError, features: client_features.ClientFeatures | None
    ) -> Mapping[str, Any]:
        """Return the questions of an error for the client; raise the error without them if it may not be asked."""
        if features is not None:
            with contextlib.suppress(client_features.RefusedError):
                if (handed_on := await features.hand_on(error.required, is_error=True)) is not None:
                    return handed_on
        raise error.refusal from error

    async def _attempt(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        progress: Progress | None,
        check: background.Check | None,
        expected: Callable[[importing.Answer], object],
        features: client_features.ClientFeatures | None,
        more: Mapping[str, Any],
        method: str,
    ) -> Mapping[str, Any]:
        live = await self._connected(announce=True)
        if self._answer is not None:
            expected(self._answer)
        import pydantic
        from mcp.shared.exceptions import MCPError

        if method == results.CALL:
            arguments = {"name": tool, "arguments": arguments}
        request, result_type = requests.made(method, arguments)
        validate = result_type.model_validate
        if features is not None and (features.modes or features.log_level):
            client_features.prepare(request.params, features, more)
            validate = client_features.result_type(result_type).validate_python
        last = last_check.LastCheck(check)
        if self.reached.command:
            await last.make()
        # Read by the transport until this returns.
        token = last_check.CURRENT.set(last)
        live.calls += 1
        try:
            async with asyncio.timeout(self.reached.timeout) as limit:
                # Not with the client's call_tool, which checks the result against the server's schema: its patterns can
                # take very long, on the event loop that all servers share.
                running_call = client_features.RunningCall(
                    features=features, limit=limit, seconds=self.reached.timeout
                )
                with live.running_calls.entered(running_call):
                    # Unchanged: the client's own type drops unknown fields, and writes 1 as 1.0.
                    result = await live.at_hand().session.send_request(
                        request,
                        _as_sent(),
                        progress_callback=_extending(running_call, progress),
                    )
            validate(result, by_name=False)
        except TimeoutError:
            self._late += 1
            if self._late >= self._limits.late:
                self._end(live)
            raise
        except pydantic.ValidationError as error:
            raise contract.ToolError("The server's answer is not a valid result.") from error
        except Exception as error:
            if last.refusal is not None:
                raise last.refusal from None
            if last.is_session_refused:
                self._retire(live)
                raise live_connection.SessionLostError(live.why(error, self.reached)) from error
            refusal: errors.ToolbeltError = live_connection.UnreachableError(live.why(error, self.reached))
            if isinstance(error, MCPError):
                refusal = live.refusal(error, self.reached)
                if method != results.CALL and not isinstance(refusal, live_connection.UnreachableError):
                    refusal = requests.RequestFailedError(str(refusal), error.code)
                if (pages := client_features.required_pages(error, features)) is not None:
                    raise client_features.PagesRequiredError(pages, refusal) from error
                if features is not None and client_features.is_wanted(error):
                    features.wanted()
            if isinstance(refusal, live_connection.UnreachableError):
                self._end(live)
            raise refusal from error
        finally:
            last_check.CURRENT.reset(token)
            live.calls -= 1
            if live.is_retired and not live.calls:
                live.leave.set()
        self._late = 0
        answer: Mapping[str, Any] = result
        return answer

    async def _follow(
        self,
        uri: str,
        progress: Progress | None,
        check: background.Check | None,
        expected: Callable[[importing.Answer], object],
    ) -> None:
        """Call ``progress`` at each update of a resource, until the connection ends."""
        live = await self._connected(announce=True)
        if self._answer is not None:
            expected(self._answer)
        if check is not None:
            await check()
        news = asyncio.Event()
        notifying = asyncio.ensure_future(self._notify_of_updates(news, progress))
        try:
            await updates.follow(live, self._followers, uri, news.set, self._limits)
        finally:
            notifying.cancel()

    async def _notify_of_updates(self, news: asyncio.Event, progress: Progress | None) -> None:
        """Call ``progress`` after updates, once for all that arrived meanwhile."""
        while True:
            await news.wait()
            news.clear()
            if progress is not None:
                await progress(0.0, None, None)
            await self._sleep(self._limits.update_pause)

    async def close(self) -> None:
        """Close the connection permanently, and wait for its process to end, for a limited time."""
        self._closed = True
        if self._listing is not None:
            self._listing.cancel()
        live = self._live
        if live is not None:
            self._end(live)
            if live.client is None and live.task is not None:
                live.task.cancel()
        for retired in self._retired:
            retired.leave.set()
        if self._tasks:
            await asyncio.wait([*self._tasks], timeout=self._limits.close)
        for task in self._tasks:
            task.cancel()

    async def _connected(self, *, announce: bool) -> live_connection.LiveConnection:
        if self._closed:
            raise live_connection.ClosedError
        live = self._live
        if live is None:
            live = self._begin(announce)
        if live.client is None:
            # Shielded, because other requests may wait for the same connection.
            await asyncio.shield(live.opened)
        return live

    def _begin(self, announce: bool) -> live_connection.LiveConnection:
        if pause := self._away.left():
            reason = self._error or self._away.reason
            raise live_connection.UnreachableError(
                f"{reason} The next attempt is in {max(1, round(pause))} s."
            )
        live = live_connection.LiveConnection.begin()
        # In an empty context, because the connection does not belong to the first caller's.
        live.task = asyncio.get_running_loop().create_task(
            self._run(live, announce), context=contextvars.Context()
        )
        self._tasks.add(live.task)
        live.task.add_done_callback(self._tasks.discard)
        live.task.add_done_callback(live.ended)
        self._live = live
        return live

    def _end(self, live: live_connection.LiveConnection) -> None:
        """Stop new calls on this connection, and close it."""
        live.leave.set()
        if self._live is live:
            self._live = None
            self._stderr = live.stderr.text()

    def _retire(self, live: live_connection.LiveConnection) -> None:
        """Stop new calls on this connection, and close it after the answers to its calls."""
        live.is_retired = True
        if self._live is live:
            self._error = live.why(None, self.reached)
        if not live.calls:
            self._end(live)
        elif self._live is live:
            self._live = None
            self._retired.add(live)

    async def _run(self, live: live_connection.LiveConnection, announce: bool) -> None:
        error: BaseException | None = None
        try:
            async with self._opened(live) as client:
                live.client, self._error = client, ""
                live.opened.set_result(client)
                if announce and self._answer is not None:
                    self._told(self._answer)
                await live.leave.wait()
        except (Exception, asyncio.CancelledError) as raised:
            error = raised
        finally:
            self._end(live)
            self._retired.discard(live)
            if self._closed:
                refusal: live_connection.UnreachableError = live_connection.ClosedError()
            else:
                refusal = live_connection.UnreachableError(live.why(error, self.reached))
                # Unless another connection has replaced this one.
                self._error = str(refusal) if self._live is None else self._error
            if not live.opened.done():
                # A connection that Toolbelt closed while it was opened is no failure of the server.
                if not self._closed:
                    self._away.failed(str(refusal))
                if announce and not self._closed:
                    self._told(importing.Answer(error=str(refusal), stderr=live.stderr.text()))
                live.opened.set_exception(refusal)

    @contextlib.asynccontextmanager
    async def _opened(self, live: live_connection.LiveConnection) -> AsyncIterator[mcp.Client]:
        # In a thread, because it takes a moment.
        await asyncio.to_thread(opening.load)
        client = opening.client(
            self.reached,
            self._environ,
            live,
            ended=lambda: self._end(live),
            session_over=lambda: self._retire(live),
            heard=self._heard,
            may_ask=self._may_ask,
        )
        async with contextlib.AsyncExitStack() as stack:
            async with asyncio.timeout(self.reached.timeout):
                await stack.enter_async_context(client)
                self.has_session = live.has_session
                await stack.enter_async_context(self._listening(client))
                self._answer = await self._listed(client, live)
            yield client

    @contextlib.asynccontextmanager
    async def _listening(self, client: mcp.Client) -> AsyncIterator[None]:
        """Listen for changes, if the revision requires a subscription."""
        begun = asyncio.Event()
        listening = asyncio.ensure_future(changes.listen(client, self._changed, self._limits, begun))
        try:
            # A server that never answers this may answer everything else.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._limits.subscribe):
                    await begun.wait()
            yield
        finally:
            listening.cancel()
            await asyncio.wait({listening})

    async def _heard(self, message: Any) -> None:
        import mcp_types

        if isinstance(message, mcp_types.ResourceUpdatedNotification):
            self._followers.tell(str(message.params.uri))
        elif isinstance(
            message,
            mcp_types.ToolListChangedNotification
            | mcp_types.PromptListChangedNotification
            | mcp_types.ResourceListChangedNotification,
        ):
            self._changed()

    def _changed(self) -> None:
        """List again, once for all changes that were announced meanwhile."""
        self._is_stale = True
        if self._listing is None and self._live is not None and not self._closed:
            self._listing = asyncio.ensure_future(self._relisted_in_turn(self._live))
            self._listing.add_done_callback(self._tell)

    def _tell(self, listing: asyncio.Task[importing.Answer]) -> None:
        self._listing = None
        self._relists.listed()
        if listing.cancelled():
            return
        if listing.exception() is None:
            self._told_of_change(listing.result())
        if self._is_stale:
            self._changed()

    async def _relisted_in_turn(self, live: live_connection.LiveConnection) -> importing.Answer:
        pause = self._relists.next()
        if pause > 0:
            await self._sleep(pause)
        if self._live is not live:
            # The next connection begins with its own list.
            raise live_connection.UnreachableError("The server has ended the connection.")
        return await self._relisted()

    async def _relisted(self) -> importing.Answer:
        live = await self._connected(announce=False)
        self._is_stale = False
        try:
            async with asyncio.timeout(self.reached.timeout):
                self._answer = await self._listed(live.at_hand(), live)
        except Exception as error:
            # A connection that cannot list is of no use for calls either: the next request connects again.
            self._end(live)
            raise live_connection.UnreachableError(live.why(error, self.reached)) from error
        return self._answer

    async def _listed(self, client: mcp.Client, live: live_connection.LiveConnection) -> importing.Answer:
        listed = await paging.walk(client, self._limits)
        self._away.forget()
        return dataclasses.replace(listed, stderr=live.stderr.text())
