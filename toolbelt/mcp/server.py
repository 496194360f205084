"""Who answers an MCP client? An ASGI application: one request, one answer or one stream of events.

The list of tools is answered from bytes that are kept, after one look at the database; everything that has to ask more
goes through a thread. What comes of it is logged and counted by whoever mounted this (`Surroundings`).
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import structlog
from django.conf import settings

import toolbelt
from toolbelt import conf
from toolbelt.core import errors, meta_tools, strict_json
from toolbelt.mcp import calling, doors, heads, protocol, results, revisions, streams, threads, told
from toolbelt.runtime import access, calls, ready, tool_lists

Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
Headers = tuple[tuple[bytes, bytes], ...]

# A larger body is read only for those whose token opens something.
MOST_FOR_STRANGERS = 100_000
# How soon a client may come again after its stream ended, in milliseconds.
RETRY = 1000
PING = 15.0
# A larger body is sent for itself.
LARGE = 50_000

_JSON: Headers = ((b"content-type", b"application/json"),)
_EVENTS: Headers = (
    (b"content-type", b"text/event-stream"),
    # Whoever stands in between is to hand each event on as it comes.
    (b"x-accel-buffering", b"no"),
)
_SERVER = {"name": "toolbelt", "title": "Toolbelt", "version": toolbelt.__version__}
_CAPABILITIES = {"tools": {"listChanged": True}}
# What the second era has in each answer. An answer is old at once: a flip counts at the next question.
_ABOUT: Mapping[str, Any] = {protocol.SERVER: _SERVER}
_MODERN: Mapping[str, Any] = {"resultType": "complete", "_meta": _ABOUT}
_FRESH = {"ttlMs": 0, "cacheScope": "private"}
_LOADING = frozenset({meta_tools.LOAD, meta_tools.UNLOAD})

_log = structlog.get_logger(__name__)


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


class _Reply(NamedTuple):
    """An answer that is whole. ``bearer`` is who gets it; ``tail`` is what comes behind a body that is kept."""

    status: int
    body: bytes
    bearer: str = ""
    headers: Headers = _JSON
    tail: bytes = b""


class Server:
    """The endpoint of one server process, for one event loop."""

    def __init__(self, answers: ready.Answers | None, around: Surroundings) -> None:
        self._lists = tool_lists.Lists(answers.standings) if answers is not None else None
        self._around = around
        self._heads = heads.Reader(conf.API_BODY_BYTES)
        self._depth, self._per_minute = conf.API_BODY_DEPTH, conf.API_PER_MINUTE
        self._told = told.Told()
        self._running = calling.Running()
        self.streams = streams.Streams(self._digest)
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

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request that is for here."""
        exchange = _Exchange(self, scope, receive, send)
        try:
            reply = await exchange.answered()
        except protocol.Fault as refusal:
            reply = await exchange.refused(refusal)
        except errors.ToolbeltError as error:
            # What only the database knows to be wrong: an agent that is not there, for one.
            reply = await exchange.refused(_of(error))
        except Exception:
            _log.exception("MCP request failed", path=scope["path"])
            fault = protocol.Fault(protocol.INTERNAL_ERROR, "It was logged for an operator.", status=500)
            reply = await exchange.refused(fault)
        if reply is not None:
            await exchange.send_whole(reply)

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
        return await threads.run(_ask, seen)

    async def _digest(self, seen: streams.Seen) -> str:
        try:
            return (await self._found(seen)).tools.digest
        except errors.NotFound:
            raise heads.unknown_agent(seen.agent) from None


class _Exchange:
    """One request and what it comes to."""

    __slots__ = (
        "_bearer",
        "_begun",
        "_head",
        "_message",
        "_receive",
        "_received",
        "_request_id",
        "_revision",
        "_scope",
        "_send",
        "_sent",
        "_server",
        "is_begun",
    )

    def __init__(self, server: Server, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        self._server, self._scope, self._receive, self._send = server, scope, receive, send
        self._begun = time.perf_counter()
        self._request_id = server._around.new_id()
        self._head: heads.Head | None = None
        self._message: protocol.Message | None = None
        self._revision: revisions.Revision | None = None
        self._bearer = ""
        self._received = 0
        self._sent = 0
        self.is_begun = False

    async def answered(self) -> _Reply | None:
        """Answer; None where that was sent already."""
        head = self._head = self._server._heads.read(self._scope)
        match head.method:
            case "GET":
                return await self._listen(head)
            case "DELETE":
                return await self._leave(head)
        if head.length is None or head.length > MOST_FOR_STRANGERS:
            await self._admitted(head)
        body = await self._read(head)
        try:
            document = strict_json.read(body, self._server._depth)
        except strict_json.Unreadable as error:
            raise protocol.Fault(protocol.PARSE_ERROR, str(error)) from error
        message = self._message = protocol.read(document)
        revision = self._revision = protocol.revision(message, head.about)
        if message.id is None:
            return await self._noticed(head, message)
        if message.method not in revision.requests:
            raise protocol.Fault(protocol.METHOD_NOT_FOUND, f"There is no {message.method[:100]} here.")
        match message.method:
            case "tools/list":
                return await self._list(head, message, message.id, revision)
            case "tools/call":
                return await self._call(head, message, message.id, revision)
            case "subscriptions/listen":
                return await self._subscribe(head, message, message.id)
            case "initialize":
                return await self._shake_hands(head, message)
            case "server/discover":
                return await self._discover(head, message)
        await self._admitted(head)
        return self._reply(message, {})

    async def refused(self, fault: protocol.Fault) -> _Reply | None:
        """Give the answer that a fault is; None where it was the end of a stream."""
        message, revision = self._message, self._revision
        id_ = fault.id if fault.id is not None else message.id if message is not None else None
        is_modern = revision is None or revision.is_modern
        body = protocol.error(id_, fault)
        if self.is_begun:
            await self._say(protocol.event(body), more=False)
            self._note(200)
            return None
        return _Reply(fault.status(is_modern=is_modern), body, self._bearer, (*_JSON, *fault.headers))

    async def send_whole(self, reply: _Reply) -> None:
        """Send an answer that is whole, and note it."""
        status, body, _, own, tail = reply
        headers = self._server.headers(self._scope["scheme"], own, self._request_id)
        self._sent = len(body) + len(tail)
        headers.append((b"content-length", b"%d" % self._sent))
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        if len(body) > LARGE:
            # Putting them together would copy it.
            await self._send({"type": "http.response.body", "body": body, "more_body": True})
            body = b""
        await self._send({"type": "http.response.body", "body": body + tail if tail else body})
        self._note(status)

    # What there is to ask for

    async def _list(
        self, head: heads.Head, message: protocol.Message, id_: protocol.Id, revision: revisions.Revision
    ) -> _Reply:
        after = protocol.cursor(message)
        found = await self._found(head, may_grow=not revision.is_modern)
        self._server._told.gave(head, found.tools)
        body = found.tools.framed.get(revision.is_modern) if after is None else None
        if body is None:
            body = _framed(found.tools, after, revision)
            if after is None:
                found.tools.framed[revision.is_modern] = body
        return _Reply(200, body, self._bearer, tail=protocol.id_as_json(id_) + b"}")

    async def _shake_hands(self, head: heads.Head, message: protocol.Message) -> _Reply:
        found = await self._found(head, may_grow=True)
        result: dict[str, Any] = {
            "protocolVersion": revisions.agreed(message.params.get("protocolVersion")),
            "capabilities": _CAPABILITIES,
            "serverInfo": _SERVER,
        }
        if found.tools.instructions:
            result["instructions"] = found.tools.instructions
        session = (b"mcp-session-id", told.new_session(found.tools.digest).encode())
        return self._reply(message, result)._replace(headers=(*_JSON, session))

    async def _discover(self, head: heads.Head, message: protocol.Message) -> _Reply:
        found = await self._found(head, may_grow=False)
        result: dict[str, Any] = {
            **_MODERN,
            **_FRESH,
            "supportedVersions": list(revisions.SUPPORTED),
            "capabilities": _CAPABILITIES,
        }
        if found.tools.instructions:
            result["instructions"] = found.tools.instructions
        return self._reply(message, result)

    async def _noticed(self, head: heads.Head, message: protocol.Message) -> _Reply:
        """Take a notification, or an answer to what nobody asked."""
        await self._admitted(head)
        if message.method == protocol.CANCELLED_BY_CLIENT and self._revision and not self._revision.is_modern:
            self._server._running.cancel(head, message.params.get("requestId"))
        return _Reply(202, b"", self._bearer, ())

    async def _leave(self, head: heads.Head) -> _Reply:
        await self._admitted(head)
        if head.about.version in revisions.MODERN:
            raise protocol.Fault(
                protocol.INVALID_REQUEST,
                "This revision has no sessions.",
                status=405,
                headers=heads.ALLOW_POST,
            )
        self._server.streams.leave(head.agent, head.client_session)
        self._server._told.forget(head)
        # Its id would go on working, which after any other answer it must not.
        raise protocol.Fault(
            protocol.INVALID_REQUEST,
            "Nothing is kept of a session here: there is nothing to end.",
            status=405,
            headers=heads.ALLOW,
        )

    # Calls

    async def _call(
        self, head: heads.Head, message: protocol.Message, id_: protocol.Id, revision: revisions.Revision
    ) -> _Reply | None:
        tool, arguments = message.params.get("name"), message.params.get("arguments")
        if not isinstance(tool, str):
            raise protocol.Fault(protocol.INVALID_PARAMS, "params.name is the name of a tool.")
        if arguments is not None and not isinstance(arguments, dict):
            raise protocol.Fault(protocol.INVALID_PARAMS, "params.arguments is a JSON object.")
        before = await self._found(head, may_grow=not revision.is_modern)
        call = calling.Call(
            head=head,
            bearer=before.bearer,
            request_id=self._request_id,
            tool=tool,
            arguments=arguments or {},
            by_dispatch=before.tools.form == "dispatch",
            progress_token=protocol.progress_token(message) if head.takes_events else None,
        )
        task = self._server._running.begin(call, id_)
        gone = asyncio.create_task(_gone(self._receive))
        try:
            while not task.done():
                await self._wait(call, {task, gone})
                if gone.done() and not task.done():
                    if revision.is_modern:
                        # That is how a client of this era takes a request back.
                        task.cancel()
                    # An earlier one says so; without that the call goes on, for what it does may count.
                    with contextlib.suppress(asyncio.CancelledError, Exception):
                        await task
                    self._note(499)
                    return None
                if not task.done() and head.takes_events:
                    await self._tell(call.heard() or [b": still at work\n\n"])
            for said in call.heard():
                await self._tell([said])
            return await self._end(message, await self._outcome(call, task, revision, before))
        finally:
            gone.cancel()

    async def _wait(self, call: calling.Call, until: set[asyncio.Task[Any]]) -> None:
        """Wait until the call is over, its client is gone, there is progress to tell, or a sign of life is due."""
        news = asyncio.create_task(call.news.wait())
        try:
            await asyncio.wait({*until, news}, timeout=PING, return_when=asyncio.FIRST_COMPLETED)
        finally:
            news.cancel()

    async def _outcome(
        self,
        call: calling.Call,
        task: asyncio.Task[calls.Answer],
        revision: revisions.Revision,
        before: tool_lists.Found,
    ) -> Mapping[str, Any] | protocol.Fault:
        """Give the result of a call that is over, with what its client may not know yet."""
        head, server = call.head, self._server
        try:
            answer = task.result()
        except asyncio.CancelledError:
            return protocol.Fault(protocol.CANCELLED, "The request was cancelled.")
        except protocol.Fault as fault:
            return fault
        try:
            now = (await server.found(head, may_grow=not revision.is_modern)).tools
        except (protocol.Fault, errors.ToolbeltError):
            # It opens nothing any more; but what was called has run.
            now = before.tools
        if now.digest != before.tools.digest and call.tool in _LOADING and not revision.is_modern:
            await self._tell_of_loading(head, now)
        news = server._told.news(head, now)
        try:
            result = results.with_news(results.of(answer, call.named), news)
        except protocol.Fault as fault:
            return protocol.Fault(fault.code, f"{fault.message} {news}".strip())
        if revision.is_modern:
            result = {**result, **_MODERN, "_meta": {**result.get("_meta", {}), **_ABOUT}}
        return result

    async def _tell_of_loading(self, head: heads.Head, now: tool_lists.ToolList) -> None:
        """Tell that a list grew or shrank by loading: over the client's own stream, or else ahead of the result."""
        server = self._server
        seen = streams.Seen(head.token, head.agent, head.session, True)
        if server.streams.reach(seen, head.client_session):
            await server.streams.look(head.agent)
        elif head.takes_events:
            await self._tell([protocol.event(protocol.notification(protocol.LIST_CHANGED))], as_is=True)

    async def _tell(self, said: list[bytes], *, as_is: bool = False) -> None:
        """Send messages ahead of the result, which makes a stream of the answer."""
        if not self.is_begun:
            await self._begin(_EVENTS)
        for one in said:
            await self._say(one if as_is or one.startswith(b":") else protocol.event(one))

    async def _end(
        self, message: protocol.Message, outcome: Mapping[str, Any] | protocol.Fault
    ) -> _Reply | None:
        """Answer with what a call came to: as the last event, if there is a stream."""
        if isinstance(outcome, protocol.Fault):
            return await self.refused(outcome)
        if not self.is_begun:
            return self._reply(message, outcome)
        await self._say(protocol.event(protocol.answer(message.id, outcome)), more=False)
        self._note(200)
        return None

    # Streams

    async def _listen(self, head: heads.Head) -> _Reply | None:
        """Open the stream of a client of the first era."""
        version = head.about.version or revisions.ASSUMED
        if version not in revisions.HANDSHAKE:
            if version in revisions.MODERN:
                raise protocol.Fault(
                    protocol.INVALID_REQUEST,
                    "This revision listens by subscriptions/listen.",
                    status=405,
                    headers=heads.ALLOW_POST,
                )
            raise protocol.Fault(protocol.INVALID_REQUEST, f"Revision {version[:40]!r} is not spoken here.")
        found = await self._found(head, may_grow=True)
        known = told.digest_in(head.last_event) or self._server._told.digest(head) or found.tools.digest
        seen = streams.Seen(head.token, head.agent, head.session, True)
        stream = streams.Stream(seen=seen, digest=known, client=head.client_session)
        first = b"retry: %d\n: here is what changes\n\n" % RETRY
        if revisions.REVISIONS[version].is_primed:
            first = b"id: %s\nretry: %d\ndata:\n\n" % (told.new_session(known).encode(), RETRY)
        with self._stream(stream, found.tools.digest):
            await self._begin(_EVENTS)
            await self._say(first)
            message = protocol.notification(protocol.LIST_CHANGED)
            if await self._follow(stream, lambda digest: protocol.event(message, told.new_session(digest))):
                await self._say(b"", more=False)
        self._note(200)
        return None

    async def _subscribe(
        self, head: heads.Head, message: protocol.Message, id_: protocol.Id
    ) -> _Reply | None:
        """Open the stream of a client of the second era."""
        wanted = message.params.get("notifications")
        if not isinstance(wanted, dict):
            raise protocol.Fault(protocol.INVALID_PARAMS, "params.notifications is a JSON object.")
        if not head.takes_events:
            raise protocol.Fault(
                protocol.INVALID_REQUEST, "Accept text/event-stream: the answer is a stream.", status=406
            )
        found = await self._found(head, may_grow=False)
        seen = streams.Seen(head.token, head.agent, head.session, False)
        stream = streams.Stream(seen=seen, digest=found.tools.digest)
        is_wanted = wanted.get("toolsListChanged") is True
        about = {protocol.SUBSCRIPTION: id_}
        honoured = {"toolsListChanged": True} if is_wanted else {}
        acknowledged = protocol.notification(
            protocol.ACKNOWLEDGED, {"notifications": honoured, "_meta": about}
        )
        changed = protocol.event(protocol.notification(protocol.LIST_CHANGED, {"_meta": about}))
        with self._stream(stream, found.tools.digest):
            await self._begin(_EVENTS)
            await self._say(protocol.event(acknowledged))
            if await self._follow(stream, lambda _: changed if is_wanted else b""):
                meta = {**_ABOUT, **about}
                await self._say(
                    protocol.event(protocol.answer(id_, {"resultType": "complete", "_meta": meta})),
                    more=False,
                )
        self._note(200)
        return None

    @contextlib.contextmanager
    def _stream(self, stream: streams.Stream, now: str) -> Any:
        self._server.streams.open(stream)
        try:
            # Its client may know an older list than the one of this moment.
            stream.see(now)
            yield
        finally:
            self._server.streams.close(stream)

    async def _follow(self, stream: streams.Stream, event: Callable[[str], bytes]) -> bool:
        """Tell a client of changes; say whether the stream ended on this side."""
        gone = asyncio.create_task(_gone(self._receive))
        gone.add_done_callback(lambda _: stream.end())
        try:
            while True:
                digest = await stream.turn(streams.KEEP_ALIVE)
                if gone.done():
                    return False
                if digest is not None:
                    await self._say(event(digest))
                if stream.is_over:
                    return True
                if digest is None:
                    await self._say(b": still here\n\n")
        finally:
            gone.cancel()

    # What all of them do

    async def _found(self, head: heads.Head, *, may_grow: bool) -> tool_lists.Found:
        found = await self._server.found(head, may_grow=may_grow)
        self._let_in(found.bearer)
        return found

    async def _admitted(self, head: heads.Head) -> None:
        """Ask whose token it is, unless that was asked before."""
        if not self._bearer:
            self._let_in(await threads.run(doors.admitted, head.token, head.agent))

    def _let_in(self, bearer: access.Bearer) -> None:
        if self._bearer:
            return
        self._bearer = bearer.name
        per_minute = self._server._per_minute
        if per_minute and (wait := self._server._around.wait(bearer.prefix, per_minute)):
            seconds = math.ceil(wait)
            raise protocol.Fault(
                protocol.INVALID_REQUEST,
                f"This token may make {per_minute} requests a minute: wait {seconds} s.",
                status=429,
                headers=((b"retry-after", b"%d" % seconds),),
            )

    async def _read(self, head: heads.Head) -> bytes:
        parts = []
        while True:
            message = await self._receive()
            if message["type"] != "http.request":
                break
            part = message.get("body", b"")
            self._received += len(part)
            if self._received > self._server._heads.most:
                raise heads.too_large(self._server._heads.most)
            parts.append(part)
            if not message.get("more_body"):
                break
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _reply(self, message: protocol.Message, result: Mapping[str, Any]) -> _Reply:
        return _Reply(200, protocol.answer(message.id, result), self._bearer)

    async def _begin(self, own: Headers) -> None:
        self.is_begun = True
        headers = self._server.headers(self._scope["scheme"], own, self._request_id)
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})

    async def _say(self, text: bytes, *, more: bool = True) -> None:
        self._sent += len(text)
        await self._send({"type": "http.response.body", "body": text, "more_body": more})

    def _note(self, status: int) -> None:
        scope = self._scope
        client = scope.get("client")
        self._server._around.note(
            Answered(
                scope["method"],
                "https" if scope["scheme"] == "https" else "http",
                scope["path"],
                client[0] if client else None,
                status,
                self._received,
                self._sent,
                self._request_id,
                self._bearer,
                time.perf_counter() - self._begun,
            )
        )


def _ask(seen: streams.Seen) -> tool_lists.Found:
    bearer = doors.admitted(seen.token, seen.agent)
    return tool_lists.Found(bearer, tool_lists.ask(seen.agent, seen.session, may_grow=seen.may_grow))


def _of(error: errors.ToolbeltError) -> protocol.Fault:
    if isinstance(error, errors.NotFound):
        return protocol.Fault(protocol.INVALID_REQUEST, str(error), status=404)
    return protocol.Fault(protocol.INVALID_PARAMS, str(error))


async def _gone(receive: Receive) -> None:
    """Wait until the client is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _framed(tools: tool_lists.ToolList, after: str | None, revision: revisions.Revision) -> bytes:
    """Write the answer with a page of the list, up to the request's id."""
    page, last = tools.page(after)
    more = b"" if last is None else b',"nextCursor":"%s"' % protocol.cursor_after(last).encode()
    begin, end = _LIST_AROUND[revision.is_modern]
    return b"".join((begin, page, more, end))


def _around(is_modern: bool) -> tuple[bytes, bytes]:
    """Write what stands around the tools of a list: before them, and behind them up to the request's id."""
    more = {**_MODERN, **_FRESH} if is_modern else {}
    said = protocol.answer(None, {**more, "tools": []})
    marked, _, rest = said.partition(b'"tools":[]')
    begin = marked.replace(b'"id":null,', b"") + b'"tools":'
    return begin, rest.removesuffix(b"}") + b',"id":'


_LIST_AROUND = {is_modern: _around(is_modern) for is_modern in (True, False)}
