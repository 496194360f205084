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
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from toolbelt.core import caches, connections, errors
from toolbelt.core.imported import importing
from toolbelt.plugins.upstream import (
    backoff,
    changes,
    eras,
    limits,
    live_connection,
    opening,
    paging,
    updates,
)

if TYPE_CHECKING:
    import mcp

# How many callers a server remembers.
_MAX_CALLERS = 10_000

OnList = Callable[[importing.ServerListing], None]


class _NotOverSSEError(Exception):
    """The server does not speak HTTP+SSE."""


class Server:
    """One server. ``environ`` contains the variables that its connection settings name. ``on_list`` is called with each
    list that was not requested, and with the error if a call cannot reach the server.

    ``on_change`` is called with a list that the server announced as changed; by default it is ``on_list``. ``pause`` is
    the pause after a failure to connect, which all connections to the same server share. ``sleep`` is used between
    lists and updates that the server itself causes. ``may_ask``: an operator lets the server ask users, which is
    announced. ``tokens`` are those of the sign-in at the server, if it has one.
    """

    def __init__(
        self,
        settings: connections.Connection,
        *,
        environ: Mapping[str, str],
        on_list: OnList = lambda answer: None,
        on_change: OnList | None = None,
        pause: backoff.Backoff | None = None,
        bounds: limits.Limits | None = None,
        may_ask: bool = False,
        tokens: live_connection.Tokens | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self.settings = settings
        self.limits = bounds or limits.Limits()
        self._environ, self._on_list, self.on_change = environ, on_list, on_change or on_list
        # Whether the server gave the id of a session on the last connection; None before the first.
        self.has_session: bool | None = None
        # The current connection, and those that end after their last answer.
        self._live: live_connection.LiveConnection | None = None
        self._retired: set[live_connection.LiveConnection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._answer: importing.ServerListing | None = None
        self._listing: asyncio.Task[importing.ServerListing] | None = None
        self._is_stale = False
        # How many sessions the server has lost, and how many each caller knows of.
        self._losses = 0
        self._known_losses: caches.LruCache[str, int] = caches.LruCache(_MAX_CALLERS)
        self._closed = False
        self._error, self._stderr = "", ""
        self._pause, self._relists = (
            pause or backoff.Backoff(self.limits),
            backoff.RelistThrottle(self.limits),
        )
        self._late = 0
        self.followers = updates.Followers()
        self.sleep = sleep
        self._may_ask, self._tokens = may_ask, tokens

    @property
    def listed(self) -> importing.ServerListing | None:
        """Return the lists that the server sent on the current connection, or on the last one."""
        return self._answer

    def status(self) -> live_connection.Status:
        """Return the state of the connection. For any thread."""
        answer, live = self._answer, self._live
        pause = self._pause.left()
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
        self._pause.answered_elsewhere(at)

    async def tools(self) -> importing.ServerListing:
        """Return the latest lists of the server."""
        await self.connected()
        if self._answer is None:
            raise live_connection.UnreachableError(self._error or "The server has ended the connection.")
        return self._answer

    async def ask(self) -> importing.ServerListing:
        """List the server's tools again. Return an answer with an error if that fails; raise only ClosedError."""
        try:
            was_open = self._live is not None
            # It may have learned a newer revision.
            eras.forget(self.settings)
            self._pause.cut_short()
            await self.connected(announce=False)
            if was_open:
                # If the server was restarted, this connection is no longer valid, and another one is opened.
                with contextlib.suppress(live_connection.UnreachableError):
                    return await self._relisted()
            return await self.tools()
        except errors.ToolbeltError as error:
            if self._closed:
                raise live_connection.ClosedError from error
            return _failed(error, self.status().stderr)

    async def close(self) -> None:
        """Close the connection permanently, and wait for its process to end, for a limited time."""
        self._closed = True
        if self._listing is not None:
            self._listing.cancel()
        live = self._live
        if live is not None:
            self.end(live)
            if live.client is None and live.task is not None:
                live.task.cancel()
        for retired in self._retired:
            retired.leave.set()
        if self._tasks:
            await asyncio.wait([*self._tasks], timeout=self.limits.close)
        for task in self._tasks:
            task.cancel()

    async def connected(self, *, announce: bool = True) -> live_connection.LiveConnection:
        """Return the current connection, once it is open. Raise UnreachableError.

        With ``announce``, ``on_list`` is called with what a new connection lists.
        """
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
        if pause := self._pause.left():
            reason = self._error or self._pause.reason
            needs = self._pause.is_sign_in_needed
            kind = live_connection.SignInNeededError if needs else live_connection.UnreachableError
            raise kind(f"{reason} The next attempt is in {max(1, round(pause))} s.")
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

    def end(self, live: live_connection.LiveConnection) -> None:
        """Stop new calls on this connection, and close it."""
        live.leave.set()
        if self._live is live:
            self._live = None
            self._stderr = live.stderr.text()

    def note_session_end(self, live: live_connection.LiveConnection) -> None:
        """Note that the server no longer knows the session, and retire its connection."""
        if live.has_session and not live.is_lost:
            live.is_lost = True
            self._losses += 1
        self.retire(live)

    def known_losses(self, caller: str) -> int | None:
        """Return how many lost sessions a caller knows of; None if it has called nothing."""
        return self._known_losses.get(caller)

    def note_known_losses(self, caller: str) -> int:
        """Note that a caller learns of the sessions that were lost, and return how many these are."""
        self._known_losses.put(caller, self._losses)
        return self._losses

    def retire(self, live: live_connection.LiveConnection) -> None:
        """Stop new calls on this connection, and close it after the answers to its calls."""
        live.is_retired = True
        if self._live is live:
            self._error = live.why(None, self.settings)
        if not live.calls:
            self.end(live)
        elif self._live is live:
            self._live = None
            self._retired.add(live)

    def note_in_time(self) -> None:
        """Note that the server answered a call."""
        self._late = 0

    def note_late(self, live: live_connection.LiveConnection) -> None:
        """Note that the server did not answer a call in time. Close the connection if it is not the first."""
        self._late += 1
        if self._late >= self.limits.late:
            self.end(live)

    async def _run(self, live: live_connection.LiveConnection, announce: bool) -> None:
        error: BaseException | None = None
        try:
            async with self._opened(live) as client:
                live.client, self._error = client, ""
                live.opened.set_result(client)
                if announce and self._answer is not None:
                    self._on_list(self._answer)
                await live.leave.wait()
        except (Exception, asyncio.CancelledError) as raised:
            error = raised
        finally:
            self.end(live)
            self._retired.discard(live)
            if self._closed:
                refusal: live_connection.UnreachableError = live_connection.ClosedError()
            else:
                refusal = live.unreachable(error, self.settings)
                # Unless another connection has replaced this one.
                self._error = str(refusal) if self._live is None else self._error
            if not live.opened.done():
                # A connection that Toolbelt closed while it was opened is no failure of the server.
                if not self._closed:
                    is_sign_in_needed = isinstance(refusal, live_connection.SignInNeededError)
                    self._pause.failed(str(refusal), is_sign_in_needed=is_sign_in_needed)
                if announce and not self._closed:
                    self._on_list(_failed(refusal, live.stderr.text()))
                live.opened.set_exception(refusal)

    @contextlib.asynccontextmanager
    async def _opened(self, live: live_connection.LiveConnection) -> AsyncIterator[mcp.Client]:
        # In a thread, because it takes a moment.
        await asyncio.to_thread(opening.load)
        async with contextlib.AsyncExitStack() as stack:
            async with asyncio.timeout(self.settings.timeout):
                client = await self._entered(live, stack)
                self.has_session = live.has_session
                await stack.enter_async_context(self._listening(client))
                self._answer = await self._listed(client, live)
            yield client

    async def _entered(
        self, live: live_connection.LiveConnection, stack: contextlib.AsyncExitStack
    ) -> mcp.Client:
        """Return a client that has shaken hands.

        A server that breaks when it is probed is initialized on a new connection. One that refuses the handshake over
        HTTP may speak HTTP+SSE. What it is found to need is remembered.
        """
        beginning = eras.beginning(self.settings)
        if beginning == "http-sse":
            return await self._entered_over_sse(live, stack, limit=None)
        # Nothing follows the probe for a named revision, so it may take as long as any answer.
        seconds = self.settings.timeout if self.settings.revision else self.limits.probe
        probe = eras.Probe(seconds) if beginning == "probed" else None
        try:
            try:
                client = await self._begun(live, stack, probe)
            except Exception:
                if probe is None or not (probe.is_pending or probe.is_fatal) or self.settings.revision:
                    raise
                live.begin_again()
                client = await self._begun(live, stack, None)
                eras.remember(self.settings, "initialized")
        except Exception:
            is_refused = bool(self.settings.url) and 400 <= live.http_status < 500
            if not is_refused or self.settings.revision == "2026-07-28":
                raise
            # As MCP says for clients that also speak its old transport.
            with contextlib.suppress(_NotOverSSEError):
                return await self._entered_over_sse(live, stack, limit=self.limits.probe)
            raise
        if probe is not None and probe.is_ignored:
            eras.remember(self.settings, "initialized")
        if self.settings.revision == "2026-07-28" != client.protocol_version:
            raise live_connection.UnreachableError(
                f"The server answers with revision {client.protocol_version} of MCP, and not with 2026-07-28, as its"
                " connection requires."
            )
        return client

    async def _entered_over_sse(
        self, live: live_connection.LiveConnection, stack: contextlib.AsyncExitStack, *, limit: float | None
    ) -> mcp.Client:
        """Return a client that has shaken hands over HTTP+SSE. Raise _NotOverSSEError if the server does not name an
        address for messages within ``limit`` seconds.
        """
        is_known = False

        def note_endpoint() -> None:
            nonlocal is_known
            is_known = True
            live.begin_again()
            live.note_session()
            eras.remember(self.settings, "http-sse")

        try:
            http_sse = opening.HttpSse(on_endpoint=note_endpoint, limit=limit)
            return await self._begun(live, stack, None, http_sse)
        except Exception as error:
            if is_known:
                raise
            # It may have learned the newer transport.
            eras.forget(self.settings)
            if limit is None or live.failure is not None:
                raise
            raise _NotOverSSEError from error

    async def _begun(
        self,
        live: live_connection.LiveConnection,
        stack: contextlib.AsyncExitStack,
        probe: eras.Probe | None,
        http_sse: opening.HttpSse | None = None,
    ) -> mcp.Client:
        """Return a client that has shaken hands in this way. Until then, the end of its messages ends nothing else."""

        def note_end() -> None:
            live.is_over = True
            if live.has_begun:
                self.end(live)

        client = opening.client(
            self.settings,
            self._environ,
            live,
            on_end=note_end,
            on_session_end=lambda: self.note_session_end(live),
            on_message=self._note_message,
            may_ask=self._may_ask,
            tokens=self._tokens,
            probe=probe,
            http_sse=http_sse,
        )
        await stack.enter_async_context(client)
        live.has_begun = True
        if live.is_over:
            self.end(live)
        return client

    @contextlib.asynccontextmanager
    async def _listening(self, client: mcp.Client) -> AsyncIterator[None]:
        """Listen for changes, if the revision requires a subscription."""
        begun = asyncio.Event()
        listening = asyncio.ensure_future(changes.listen(client, self._changed, self.limits, begun))
        try:
            # A server that never answers this may answer everything else.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.limits.subscribe):
                    await begun.wait()
            yield
        finally:
            listening.cancel()
            await asyncio.wait({listening})

    async def _note_message(self, message: Any) -> None:
        import mcp_types

        if isinstance(message, mcp_types.ResourceUpdatedNotification):
            self.followers.notify(str(message.params.uri))
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
            self._listing.add_done_callback(self._listed_again)

    def _listed_again(self, listing: asyncio.Task[importing.ServerListing]) -> None:
        self._listing = None
        self._relists.listed()
        if listing.cancelled():
            return
        if listing.exception() is None:
            self.on_change(listing.result())
        if self._is_stale:
            self._changed()

    async def _relisted_in_turn(self, live: live_connection.LiveConnection) -> importing.ServerListing:
        pause = self._relists.next()
        if pause > 0:
            await self.sleep(pause)
        if self._live is not live:
            # The next connection begins with its own list.
            raise live_connection.UnreachableError("The server has ended the connection.")
        return await self._relisted()

    async def _relisted(self) -> importing.ServerListing:
        live = await self.connected(announce=False)
        self._is_stale = False
        try:
            async with asyncio.timeout(self.settings.timeout):
                self._answer = await self._listed(live.at_hand(), live)
        except Exception as error:
            # A connection that cannot list is of no use for calls either: the next request connects again.
            self.end(live)
            raise live.unreachable(error, self.settings) from error
        return self._answer

    async def _listed(
        self, client: mcp.Client, live: live_connection.LiveConnection
    ) -> importing.ServerListing:
        listed = await paging.read_lists(client, live.lists, self.limits)
        self._pause.forget()
        return dataclasses.replace(listed, instructions=client.instructions or "", stderr=live.stderr.text())


def _failed(error: errors.ToolbeltError, stderr: str) -> importing.ServerListing:
    """Return the answer of a server that could not be reached."""
    is_sign_in_needed = isinstance(error, live_connection.SignInNeededError)
    return importing.ServerListing(error=str(error), stderr=stderr, sign_in_needed=is_sign_in_needed)
