"""The streams of messages between the official client and a server's transport.

What is sent announces that users can be asked only where that is allowed: from 2026-07-28, the official client
announces with each request what it has callbacks for, which differs between calls. Of what is received, lists are kept
as they were sent, because the client refuses a page if one of its entries is not valid; results lose the nulls for what
they leave out; and the end is reported, which the client does not do.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import mcp_types
from mcp.shared import message as session_message

from toolbelt.plugins.upstream import client_features, eras, last_check, results

# Whether nothing waits for the message that is being sent. The client passes the context of a message to its transport.
IS_NOTIFICATION: contextvars.ContextVar[bool] = contextvars.ContextVar(
    "toolbelt_is_notification", default=False
)
# The first message after the handshake, which must arrive before all others.
_INITIALIZED = "notifications/initialized"
_DISCOVER = "server/discover"
_CANCELLED = "notifications/cancelled"
_LIST = "/list"


@contextlib.asynccontextmanager
async def wrapped(
    transport: AbstractAsyncContextManager[Any],
    *,
    may_ask: bool,
    lists: dict[str, Mapping[str, Any]],
    on_end: Callable[[], None],
    probe: eras.Probe | None = None,
) -> AsyncIterator[Any]:
    """Open a transport and yield its streams.

    ``may_ask``: an operator lets the server ask users at all. ``lists`` gets the last answer to each method that lists,
    and ``on_end`` is called at the end. A ``probe`` that is not answered in time is answered here.
    """
    async with transport as (read, write):
        requested: dict[Any, str] = {}
        incoming = Incoming(read, requested, lists, on_end, probe)
        yield incoming, Outgoing(write, requested, may_ask=may_ask, probe=probe)


class Incoming:
    """A stream of messages from a server. ``requested`` has the methods of the requests whose answers are kept or
    mended, by id."""

    def __init__(
        self,
        inner: Any,
        requested: dict[Any, str],
        lists: dict[str, Mapping[str, Any]],
        on_end: Callable[[], None],
        probe: eras.Probe | None = None,
    ) -> None:
        self._inner, self._requested, self._lists, self._on_end = inner, requested, lists, on_end
        self._probe = probe
        # What waits for the next message, while the probe may be answered here.
        self._receiving: asyncio.Task[Any] | None = None

    @property
    def last_context(self) -> Any:
        """Return the context of the last message."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> Any:
        """Return the next message."""
        try:
            item, is_received = await self._next()
        except (
            anyio.EndOfStream,
            anyio.ClosedResourceError,
            anyio.BrokenResourceError,
            # The client stops to receive: its transport has failed.
            asyncio.CancelledError,
        ):
            if self._probe is not None:
                self._probe.note_end_of_messages()
            self._on_end()
            raise
        message = getattr(item, "message", None)
        if isinstance(message, mcp_types.JSONRPCResponse | mcp_types.JSONRPCError):
            if self._probe is not None:
                self._probe.end()
                if is_received:
                    self._probe.note_answer(_id(message))
            method = self._requested.pop(_id(message), None)
            if method is not None and isinstance(message, mcp_types.JSONRPCResponse):
                if method.endswith(_LIST):
                    self._lists[method] = message.result
                else:
                    message.result = results.without_nulls(message.result, method)
        return item

    async def _next(self) -> tuple[Any, bool]:
        """Return the next message, and whether it was received: if the probe is not answered in time, it is the answer
        of a server that knows none.
        """
        if self._receiving is None and (self._probe is None or not self._probe.is_pending):
            return await self._inner.receive(), True
        self._receiving = self._receiving or asyncio.ensure_future(self._inner.receive())
        waiting: set[asyncio.Future[Any]] = {self._receiving}
        if self._probe is not None and self._probe.is_pending:
            waiting.add(self._probe.expired)
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._receiving.cancel()
            raise
        if self._receiving.done():
            received, self._receiving = self._receiving, None
            return received.result(), True
        error = mcp_types.ErrorData(
            code=mcp_types.METHOD_NOT_FOUND, message="The server did not answer in time."
        )
        id_ = self._probe.id if self._probe is not None else None
        answer = session_message.SessionMessage(mcp_types.JSONRPCError(jsonrpc="2.0", id=id_, error=error))
        return answer, False

    async def aclose(self) -> None:
        """Close the stream."""
        await self._inner.aclose()

    def __aiter__(self) -> Incoming:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Incoming:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.aclose()


class Outgoing:
    """A stream of messages to a server."""

    def __init__(
        self, inner: Any, requested: dict[Any, str], *, may_ask: bool, probe: eras.Probe | None = None
    ) -> None:
        self._inner, self._requested, self._may_ask, self._probe = inner, requested, may_ask, probe

    async def send(self, item: Any) -> None:
        """Send a message."""
        message = item.message
        check = last_check.CURRENT.get()
        if isinstance(message, mcp_types.JSONRPCRequest):
            if message.method == _DISCOVER and self._probe is not None:
                self._probe.begin(message.id)
            if message.method.endswith(_LIST) or message.method in results.METHODS:
                self._requested[_id(message)] = message.method
            if message.params is not None:
                self._adjust(message.method, message.params)
            if check is not None and not check.claim(message.id):
                check = None
        else:
            check = None
        is_notification = isinstance(message, mcp_types.JSONRPCNotification)
        if is_notification and message.method == _CANCELLED:
            self._requested.pop((message.params or {}).get("requestId"), None)
        tokens = (
            IS_NOTIFICATION.set(is_notification and message.method != _INITIALIZED),
            last_check.CURRENT.set(check),
        )
        try:
            await self._inner.send(item)
        finally:
            IS_NOTIFICATION.reset(tokens[0])
            last_check.CURRENT.reset(tokens[1])

    async def aclose(self) -> None:
        """Close the stream."""
        await self._inner.aclose()

    async def __aenter__(self) -> Outgoing:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.aclose()

    def _adjust(self, method: str, params: dict[str, Any]) -> None:
        """Let a request announce elicitation only as far as it is allowed. Its parameters belong to it alone."""
        if method == "initialize":
            if not self._may_ask:
                params["capabilities"] = _without_elicitation(params["capabilities"])
            return
        meta = params.get("_meta")
        if meta is None or (announced := meta.get(mcp_types.CLIENT_CAPABILITIES_META_KEY)) is None:
            return
        capabilities = _without_elicitation(announced)
        current = client_features.CURRENT.get()
        features = current.features if current is not None else None
        if features is not None and features.modes:
            capabilities[client_features.ELICITATION] = {mode: {} for mode in sorted(features.modes)}
        params["_meta"] = {**meta, mcp_types.CLIENT_CAPABILITIES_META_KEY: capabilities}


def _without_elicitation(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in capabilities.items() if name != client_features.ELICITATION}


def _id(message: Any) -> Any:
    """Return the id of a message. Some servers answer with the text of a number, which the client accepts."""
    id_ = message.id
    return int(id_) if isinstance(id_, str) and id_.isascii() and id_.isdigit() else id_
