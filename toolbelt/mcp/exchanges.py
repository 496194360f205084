"""What do all answers to an MCP client have in common? An exchange: a request, and the answer or stream it gets."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, NamedTuple

from django.conf import settings

import toolbelt
from toolbelt import conf
from toolbelt.core import errors
from toolbelt.mcp import doors, heads, protocol, revisions, running, streams, told
from toolbelt.runtime import access, availability, ready, subscriptions, threads, tool_lists

Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
Headers = tuple[tuple[bytes, bytes], ...]

# How long a client may leave unread what is sent to it. Whoever serves this waits with more until the client reads, so
# one that never does costs no memory, and holds up nobody else; but it is not waited for without an end.
STALLED = 30.0
# A larger body is sent for itself: putting together what is smaller costs less than sending once more.
LARGE = 250_000

JSON: Headers = ((b"content-type", b"application/json"),)
EVENTS: Headers = (
    (b"content-type", b"text/event-stream"),
    # Whoever stands in between is to hand each event on as it comes.
    (b"x-accel-buffering", b"no"),
)
SERVER = {"name": "toolbelt", "title": "Toolbelt", "version": toolbelt.__version__}
# What the second era has in each answer.
ABOUT: Mapping[str, Any] = {protocol.SERVER: SERVER}
# What an answer has, and under which header, that is the last known while the database cannot be read.
STALE: Mapping[str, Any] = {"toolbelt/stale": True}
STALE_HEADER = (b"toolbelt-stale", b"true")
MODERN: Mapping[str, Any] = {"resultType": "complete", "_meta": ABOUT}
# An answer is old at once: a flip counts at the next question.
FRESH: Mapping[str, Any] = {"ttlMs": 0, "cacheScope": "private"}
MODERN_LIST: Mapping[str, Any] = {**MODERN, **FRESH}


class Answered(NamedTuple):
    """What is to be logged and counted of a request; ``bearer`` is empty where nobody was let in."""

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


class Surroundings(NamedTuple):
    """What is around this application: who names requests, who notes what was answered, and who says for how many
    seconds a token has to wait with its next request, which may be so many a minute.
    """

    new_id: Callable[[], str]
    note: Callable[[Answered], None]
    wait: Callable[[str, int], float]


class Reply(NamedTuple):
    """An answer that is whole. ``bearer`` is who gets it; ``tail`` is what comes behind a body that is kept."""

    status: int
    body: bytes
    bearer: str = ""
    headers: Headers = JSON
    tail: bytes = b""


class Stalled(Exception):
    """A client does not read what it is sent."""


class Shared:
    """What the exchanges of one server process share, for one event loop."""

    def __init__(self, answers: ready.Answers | None, around: Surroundings) -> None:
        self.standings = answers.standings if answers is not None else None
        self._lists = tool_lists.Lists(answers.standings) if answers is not None else None
        self.around = around
        self.heads = heads.Reader(conf.API_BODY_BYTES)
        self.depth, self.per_minute = conf.API_BODY_DEPTH, conf.API_PER_MINUTE
        self.told = told.Told()
        self.running = running.Running()
        self.streams = streams.Streams(self._digest, self.subscribed)
        self._always: Headers = (
            (b"cache-control", b"no-store"),
            (b"x-content-type-options", b"nosniff"),
        )
        hsts = settings.SECURE_HSTS_SECONDS
        self._over_https: Headers = ()
        if hsts:
            kept = f"max-age={hsts}" + (
                "; includeSubDomains" if settings.SECURE_HSTS_INCLUDE_SUBDOMAINS else ""
            )
            self._over_https = ((b"strict-transport-security", kept.encode()),)

    def headers(self, scheme: str, own: Headers, request_id: str) -> list[tuple[bytes, bytes]]:
        """Give the headers of an answer."""
        more = self._over_https if scheme == "https" else ()
        return [*own, *self._always, *more, (b"x-request-id", request_id.encode())]

    async def found(self, head: heads.Head, *, may_grow: bool) -> tool_lists.Found:
        """Give who asks and the list that is theirs now. Raises protocol.Fault and errors.NotFound."""
        return await self._found(streams.Seen(head.token, head.agent, head.session, may_grow))

    async def _found(self, seen: streams.Seen) -> tool_lists.Found:
        if self._lists is not None:
            found = await self._lists.ask(seen.token, seen.agent, seen.session, may_grow=seen.may_grow)
            if found is not None:
                return found
            last = await self._lists.last_known(seen.token, seen.agent, seen.session, may_grow=seen.may_grow)
            if last is not None:
                return await self._lists.unless_away(lambda: threads.run(_ask, seen)) or last
        return await threads.run(_ask, seen)

    async def subscribed(self, keys: Collection[str]) -> Collection[str]:
        """Return those of these clients' keys that are subscribed to the policy."""
        return await threads.run(_subscribed, keys)

    async def _digest(self, seen: streams.Seen) -> streams.Digests:
        try:
            return digests((await self._found(seen)).tools)
        except errors.NotFound:
            raise heads.unknown_agent(seen.agent) from None


class Exchange:
    """One request and what it comes to."""

    __slots__ = (
        "_begun",
        "_received",
        "_send",
        "_sent",
        "bearer",
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
        self.request_id = shared.around.new_id()
        self.message: protocol.Message | None = None
        self.revision: revisions.Revision | None = None
        self.bearer = ""
        self._received = 0
        self._sent = 0
        self.is_begun = False

    async def refused(self, fault: protocol.Fault) -> Reply | None:
        """Give the answer that a fault is; None where it was the end of a stream."""
        message, revision = self.message, self.revision
        id_ = fault.id if fault.id is not None else message.id if message is not None else None
        is_modern = revision is None or revision.is_modern
        if isinstance(fault, heads.UnknownToken):
            fault.message += f" An operator makes one at {heads.tokens_page(self.scope)}"
        body = protocol.error(id_, fault)
        if self.is_begun:
            await self.say(protocol.event(body), more=False)
            self.note(200)
            return None
        return Reply(fault.status(is_modern=is_modern), body, self.bearer, (*JSON, *fault.headers))

    async def send_whole(self, reply: Reply) -> None:
        """Send an answer that is whole, and note it."""
        status, body, _, own, tail = reply
        headers = self.shared.headers(self.scope["scheme"], own, self.request_id)
        self._sent = len(body) + len(tail)
        headers.append((b"content-length", b"%d" % self._sent))
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        if len(body) > LARGE:
            await self._send({"type": "http.response.body", "body": body, "more_body": True})
            body = b""
        await self._send({"type": "http.response.body", "body": body + tail if tail else body})
        self.note(status)

    async def tell(self, said: list[bytes], *, as_is: bool = False) -> None:
        """Send messages ahead of the result, which makes a stream of the answer."""
        if not self.is_begun:
            await self.begin(EVENTS)
        for one in said:
            await self.say(one if as_is or one.startswith(b":") else protocol.event(one))

    async def found(self, head: heads.Head, *, may_grow: bool) -> tool_lists.Found:
        """Give who asks and the list that is theirs now."""
        found = await self.shared.found(head, may_grow=may_grow)
        self._let_in(found.bearer)
        return found

    async def admitted(self, head: heads.Head) -> None:
        """Ask whose token it is, unless that was asked before."""
        if not self.bearer:
            self._let_in(await threads.run(_admitted, head.token, head.agent))

    def _let_in(self, bearer: access.Bearer) -> None:
        if self.bearer:
            return
        self.bearer = bearer.name
        per_minute = self.shared.per_minute
        if per_minute and (wait := self.shared.around.wait(bearer.prefix, per_minute)):
            seconds = math.ceil(wait)
            raise protocol.Fault(
                protocol.INVALID_REQUEST,
                f"This token may make {per_minute} requests a minute: wait {seconds} s.",
                status=429,
                headers=((b"retry-after", b"%d" % seconds),),
            )

    async def read(self, head: heads.Head) -> bytes:
        """Read the body."""
        parts = []
        while True:
            message = await self.receive()
            if message["type"] != "http.request":
                break
            part = message.get("body", b"")
            self._received += len(part)
            if self._received > self.shared.heads.most:
                raise heads.too_large(self.shared.heads.most)
            parts.append(part)
            if not message.get("more_body"):
                break
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def reply(self, message: protocol.Message, result: Mapping[str, Any], *, is_stale: bool = False) -> Reply:
        """Make an answer that is whole; mark it where it is the last that is known."""
        headers = JSON
        if is_stale:
            result = {**result, "_meta": {**result.get("_meta", {}), **STALE}}
            headers = (*JSON, STALE_HEADER)
        return Reply(200, protocol.answer(message.id, result), self.bearer, headers)

    async def begin(self, own: Headers) -> None:
        """Begin an answer that comes in parts."""
        self.is_begun = True
        headers = self.shared.headers(self.scope["scheme"], own, self.request_id)
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})

    async def say(self, text: bytes, *, more: bool = True) -> None:
        """Send a part of it. Raises Stalled."""
        self._sent += len(text)
        try:
            async with asyncio.timeout(STALLED):
                await self._send({"type": "http.response.body", "body": text, "more_body": more})
        except TimeoutError:
            raise Stalled from None

    def note(self, status: int) -> None:
        """Let it be logged and counted."""
        scope = self.scope
        client = scope.get("client")
        self.shared.around.note(
            Answered(
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
    """Return what tells a client's list and policy from others."""
    return streams.Digests(tools.digest, tools.policy_digest)


@availability.raised_as_unavailable()
def _subscribed(keys: Collection[str]) -> Collection[str]:
    return subscriptions.among(keys)


@availability.raised_as_unavailable()
def _ask(seen: streams.Seen) -> tool_lists.Found:
    bearer = doors.admitted(seen.token, seen.agent)
    return tool_lists.Found(bearer, tool_lists.ask(seen.agent, seen.session, may_grow=seen.may_grow))


@availability.raised_as_unavailable()
def _admitted(token: str, agent: str) -> access.Bearer:
    return doors.admitted(token, agent)


async def gone(receive: Receive) -> None:
    """Wait until the client is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
