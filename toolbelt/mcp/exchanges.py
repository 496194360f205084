"""An exchange: a request of an MCP client, and its response or stream."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, NamedTuple

from toolbelt import conf
from toolbelt.core import errors
from toolbelt.mcp import (
    authorization,
    constant_lists,
    elicitation,
    input_required,
    list_changes,
    protocol,
    request_head,
    revisions,
    running_calls,
    streams,
)
from toolbelt.runtime import availability, credentials, threads
from toolbelt.runtime.calls import subscriptions
from toolbelt.runtime.surfaces import prepared_answers, tool_lists

Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
Headers = tuple[tuple[bytes, bytes], ...]

# How long a client may leave its response unread, in seconds. The ASGI server sends no more until the client reads, so
# a client that never reads costs no memory and delays no other client.
WRITE_TIMEOUT = 30.0
# A larger body is sent separately from its tail: for a smaller one, joining them costs less than another send.
MAX_JOINED_BYTES = 250_000

JSON: Headers = ((b"content-type", b"application/json"),)
EVENTS: Headers = (
    (b"content-type", b"text/event-stream"),
    # Proxies must not buffer events.
    (b"x-accel-buffering", b"no"),
)
# The metadata and the header of the last known result, while the database cannot be read.
STALE: Mapping[str, Any] = {"toolbelt/stale": True}
STALE_HEADER = (b"toolbelt-stale", b"true")


class AnsweredRequest(NamedTuple):
    """An answered request, for the log and the statistics. ``bearer`` is empty if authentication failed."""

    method: str
    scheme: str
    path: str
    address: str | None
    status: int
    length: int
    sent: int
    request_id: str
    bearer: str
    seconds: float


class ServerContext(NamedTuple):
    """Functions of the surrounding application: a new request's id, the headers of each response, the log of answered
    requests, and the seconds that a token has to wait until its next request, given its rate per minute.
    """

    new_id: Callable[[], str]
    headers: Callable[[str, str], list[tuple[bytes, bytes]]]
    note: Callable[[AnsweredRequest], None]
    wait: Callable[[str, int], float]


class Reply(NamedTuple):
    """A complete response. ``bearer`` is its receiver; ``tail`` follows a body that is cached."""

    status: int
    body: bytes
    bearer: str = ""
    headers: Headers = JSON
    tail: bytes = b""


class StalledError(Exception):
    """A client does not read its response."""


class Shared:
    """The state that all exchanges of one server process share, for one event loop."""

    def __init__(
        self, answers: prepared_answers.PreparedAnswers | None, server_context: ServerContext
    ) -> None:
        self.contexts = answers.contexts if answers is not None else None
        self._lists = tool_lists.ToolLists(answers.contexts) if answers is not None else None
        self.server_context = server_context
        self.heads = request_head.HeadReader(conf.API_BODY_BYTES)
        self.depth, self.per_minute = conf.API_BODY_DEPTH, conf.API_PER_MINUTE
        self.list_tracker = list_changes.ListChangeTracker()
        self.constant_lists = constant_lists.ConstantLists()
        self.running = running_calls.RunningCalls()
        self.questions = elicitation.Questions()
        # The calls whose clients repeat them, by the key of their question.
        self.parked: dict[str, input_required.ParkedCall] = {}
        self.streams = streams.Streams(self._digest, self.subscribed, self._uris)

    def headers(self, scheme: str, extra: Headers, request_id: str) -> list[tuple[bytes, bytes]]:
        """Return the headers of a response."""
        return [*extra, (b"cache-control", b"no-store"), *self.server_context.headers(scheme, request_id)]

    async def current_list(self, state: streams.StreamState) -> tool_lists.ListAnswer:
        """Return the bearer of the token and its current list. Raise ProtocolError and errors.NotFound."""
        if self._lists is not None:
            current = await self._lists.ask(
                state.token, state.key, may_grow=state.may_grow, loading=state.loading
            )
            if current is not None:
                return current
            last = await self._lists.last_known(
                state.token, state.key, may_grow=state.may_grow, loading=state.loading
            )
            if last is not None:
                return await self._lists.try_database(lambda: threads.run(_ask, state)) or last
        return await threads.run(_ask, state)

    def record_sent(
        self, head: request_head.RequestHead, tools: tool_lists.ToolList, name: str, *, may_grow: bool
    ) -> None:
        """Record that a client is sent one of its lists: the name of a field of :class:`streams.Digests`."""
        state = streams.StreamState.of(head, may_grow=may_grow)
        self.streams.record_sent(state, name, lambda: getattr(digests(tools), name))

    async def subscribed(self, keys: Collection[str]) -> Collection[str]:
        """Return the keys of these clients that have subscribed to the policy."""
        return await threads.run(_subscribed, keys)

    async def _uris(self, keys: Collection[str]) -> Mapping[str, Collection[str]]:
        return await threads.run(_uris, keys)

    async def _digest(self, state: streams.StreamState) -> streams.Digests:
        try:
            current = await self.current_list(state)
        except errors.NotFound:
            raise request_head.unknown_agent(errors.NotFound("agent", state.key.agent)) from None
        if current.is_stale:
            raise errors.Unavailable("database-unavailable", "The current lists cannot be read.", 1)
        return digests(current.tools)


class Exchange:
    """One request and its response."""

    __slots__ = (
        "_begun",
        "_received",
        "_send",
        "_sent",
        "bearer",
        "has_failed",
        "is_begun",
        "message",
        "receive",
        "request_id",
        "revision",
        "scope",
        "shared",
    )

    def __init__(self, shared: Shared, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        self.shared, self.scope, self.receive, self._send = shared, scope, receive, send
        self._begun = time.perf_counter()
        self.request_id = shared.server_context.new_id()
        self.message: protocol.Message | None = None
        self.revision: revisions.Revision | None = None
        self.bearer = ""
        self._received = 0
        self._sent = 0
        self.is_begun = False
        # Whether the called tool did, although the response is a successful one.
        self.has_failed = False

    async def refused(self, fault: protocol.ProtocolError) -> Reply | None:
        """Return the response for an error, or None if it was sent at the end of a stream."""
        message, revision = self.message, self.revision
        id_ = fault.id if fault.id is not None else message.id if message is not None else None
        is_modern = revision is None or revision.is_modern
        headers = fault.headers
        if isinstance(fault, request_head.UnknownTokenError):
            fault.message += f" An operator can issue one at {request_head.tokens_page(self.scope)}"
            headers = tuple(
                (name, request_head.with_metadata(value, self.scope)) for name, value in fault.headers
            )
        body = protocol.error(id_, fault)
        if self.is_begun:
            await self.send_part(protocol.event(body), more=False)
            self.note(200)
            return None
        return Reply(fault.status(is_modern=is_modern), body, self.bearer, (*JSON, *headers))

    async def send_whole(self, reply: Reply) -> None:
        """Send a complete response, and log it."""
        status, body, _, extra_headers, tail = reply
        headers = self.shared.headers(self.scope["scheme"], extra_headers, self.request_id)
        self._sent = len(body) + len(tail)
        headers.append((b"content-length", b"%d" % self._sent))
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        if len(body) > MAX_JOINED_BYTES:
            await self._send({"type": "http.response.body", "body": body, "more_body": True})
            body = b""
        await self._send({"type": "http.response.body", "body": body + tail if tail else body})
        self.note(status)

    async def send_messages(self, messages: list[bytes]) -> None:
        """Send messages, or comments that begin with a colon, before the result; the response becomes a stream."""
        if not self.is_begun:
            await self.begin(EVENTS)
        for message in messages:
            await self.send_part(message if message.startswith(b":") else protocol.event(message))

    async def current_list(self, head: request_head.RequestHead, *, may_grow: bool) -> tool_lists.ListAnswer:
        """Authenticate the request; return the bearer of its token and the current list, as :class:`Shared` does."""
        current = await self.shared.current_list(streams.StreamState.of(head, may_grow=may_grow))
        self._accept_bearer(current.bearer)
        return current

    async def admitted(self, head: request_head.RequestHead) -> None:
        """Authenticate the request, unless that was done before."""
        if not self.bearer:
            self._accept_bearer(await threads.run(_admitted, head.token, head.agent))

    def _accept_bearer(self, bearer: credentials.Bearer) -> None:
        if self.bearer:
            return
        self.bearer = bearer.name
        per_minute = self.shared.per_minute
        if per_minute and (wait := self.shared.server_context.wait(bearer.prefix, per_minute)):
            seconds = math.ceil(wait)
            raise protocol.ProtocolError(
                protocol.INVALID_REQUEST,
                f"This token may make {per_minute} requests a minute: wait {seconds} s.",
                status=429,
                headers=((b"retry-after", b"%d" % seconds),),
            )

    async def read(self, head: request_head.RequestHead) -> bytes:
        """Read the body."""
        chunks = []
        while True:
            message = await self.receive()
            if message["type"] != "http.request":
                break
            chunk = message.get("body", b"")
            self._received += len(chunk)
            if self._received > self.shared.heads.maximum:
                raise request_head.too_large(self.shared.heads.maximum)
            chunks.append(chunk)
            if not message.get("more_body"):
                break
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def reply(self, message: protocol.Message, result: Mapping[str, Any], *, is_stale: bool = False) -> Reply:
        """Return the complete response with a result; ``is_stale`` marks the last known one."""
        headers = JSON
        if is_stale:
            result = {**result, "_meta": {**result.get("_meta", {}), **STALE}}
            headers = (*JSON, STALE_HEADER)
        return Reply(200, protocol.answer(message.id, result), self.bearer, headers)

    async def begin(self, extra_headers: Headers) -> None:
        """Begin a response that is sent in parts."""
        self.is_begun = True
        headers = self.shared.headers(self.scope["scheme"], extra_headers, self.request_id)
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})

    async def send_part(self, text: bytes, *, more: bool = True) -> None:
        """Send a part of the response. Raise StalledError."""
        self._sent += len(text)
        try:
            async with asyncio.timeout(WRITE_TIMEOUT):
                await self._send({"type": "http.response.body", "body": text, "more_body": more})
        except TimeoutError:
            raise StalledError from None

    def note(self, status: int) -> None:
        """Log and count the request."""
        scope = self.scope
        client = scope.get("client")
        self.shared.server_context.note(
            AnsweredRequest(
                scope["method"],
                "https" if scope["scheme"] == "https" else "http",
                scope["path"],
                client[0] if client else None,
                status,
                self._received,
                self._sent,
                self.request_id,
                self.bearer,
                time.perf_counter() - self._begun,
            )
        )


def digests(tools: tool_lists.ToolList) -> streams.Digests:
    """Return the digests of a client's lists and policy; a list that never changes has an empty one."""
    non_tools = tools.non_tools
    return streams.Digests(
        "" if tools.is_constant else tools.digest,
        tools.policy_digest,
        non_tools.prompts.digest,
        non_tools.resources_digest,
    )


@availability.raised_as_unavailable()
def _subscribed(keys: Collection[str]) -> Collection[str]:
    return subscriptions.subscribed(keys)


@availability.raised_as_unavailable()
def _uris(keys: Collection[str]) -> Mapping[str, Collection[str]]:
    return subscriptions.uris(keys)


@availability.raised_as_unavailable()
def _ask(state: streams.StreamState) -> tool_lists.ListAnswer:
    bearer = authorization.authenticate(state.token, state.key.agent)
    tools = tool_lists.ask(state.key, may_grow=state.may_grow, loading=state.loading)
    return tool_lists.ListAnswer(bearer, tools)


@availability.raised_as_unavailable()
def _admitted(token: str, agent: str) -> credentials.Bearer:
    return authorization.authenticate(token, agent)


async def wait_for_disconnect(receive: Receive) -> None:
    """Wait until the client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass
