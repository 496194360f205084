"""The ASGI application in front of Django: it answers requests for surfaces and admissions, and MCP clients.

A request whose answer is prepared costs one query and no thread. Malformed and refused requests are passed to Django
unchanged, whose view returns the API's error.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Awaitable, Callable
from typing import Any

from toolbelt import conf, processes
from toolbelt.api import limits
from toolbelt.front import (
    access_log,
    admissions,
    answer_headers,
    endpoint,
    event_stream,
    ids,
    lifespan,
    messages,
    proxies,
    request_limits,
    requests,
)
from toolbelt.runtime import credentials, telemetry
from toolbelt.runtime.surfaces import prepared_answers

# The name of the view of surfaces in metrics, as in Django.
VIEW = "api:get_surface"

Ask = Callable[[prepared_answers.SurfaceRequest], Awaitable[prepared_answers.SurfaceAnswer | None]]


async def _refuse_upgrade(scope: dict[str, Any], send: messages.Send) -> None:
    """Refuse a WebSocket: there is none at any path. A server without the extension answers with 403."""
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close"})
        return
    headers = [(b"content-length", b"0"), (b"connection", b"close")]
    await send({"type": "websocket.http.response.start", "status": 426, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": b""})


class Application:
    """The ASGI application in front of Django's."""

    def __init__(
        self, django: messages.Application, answers: prepared_answers.PreparedAnswers | None
    ) -> None:
        self._django = django
        self._answers = answers
        self.notes = access_log.AccessLog()
        self._life = lifespan.Lifespan(answers, self.notes)
        self._per_minute = conf.API_PER_MINUTE
        self.mcp = endpoint.server(answers, self.notes)
        self._streams = event_stream.Streams(django)
        self._gate = request_limits.RequestLimits(self._answer, self.notes)

    async def __call__(self, scope: dict[str, Any], receive: messages.Receive, send: messages.Send) -> None:
        """Answer a request, or pass it to Django."""
        if scope["type"] == "lifespan":
            await self._life.live(receive, send)
            return
        # A server without lifespan support starts with its first request.
        processes.start_all("server")
        if scope["type"] == "websocket":
            await _refuse_upgrade(scope, send)
            return
        if scope["type"] != "http":
            await self._django(scope, receive, send)
            return
        proxies.check_client(scope)
        with telemetry.continued(scope["headers"]):
            if scope["method"] != "GET" or not await self._has_answered_at_once(scope, send):
                await self._gate(scope, receive, send)

    async def _has_answered_at_once(self, scope: dict[str, Any], send: messages.Send) -> bool:
        """Answer a request without a body whose answer is prepared: there is nothing to limit."""
        request = requests.of(scope)
        if request is None or self._answers is None or access_log.is_verbose():
            return False
        return await self._has_answered(request, None, self._answers.cached, send)

    async def _answer(self, scope: dict[str, Any], receive: messages.Receive, send: messages.Send) -> None:
        """Answer a request that is within the limits."""
        if endpoint.is_here(scope):
            await self.mcp(scope, receive, send)
            return
        if event_stream.is_here(scope):
            await self._streams.answer(scope, receive, send)
            return
        if self._answers is None or access_log.is_verbose():
            await self._django(scope, receive, send)
            return
        admission = requests.of(scope, admissions.PATH) if scope["method"] == "POST" else None
        if admission is not None:
            content, receive = await messages.read(receive)
            if await self._has_admitted(self._answers, admission, content, send):
                return
        request = requests.of(scope)
        if request is not None:
            body = None
            if request.method == "POST":
                body, receive = await messages.read(receive)
            ask = functools.partial(self._answers.ask, may_ask=self._may_ask)
            if await self._has_answered(request, body, ask, send):
                return
        await self._django(scope, receive, send)

    async def _has_admitted(
        self,
        answers: prepared_answers.PreparedAnswers,
        request: requests.Request,
        body: bytes,
        send: messages.Send,
    ) -> bool:
        """Admit or refuse a call and send the answer, and return whether that was possible. If not, Django answers."""
        begun = time.perf_counter()
        call = admissions.parse(request, body)
        context = None if call is None else await admissions.find_context(answers.contexts, request, call)
        if call is None or context is None or not self._may_ask(context.bearer, 1):
            return False
        sent = admissions.answer(call, context)
        if sent is None:
            # Django counts the request.
            self._may_ask(context.bearer, -1)
            return False
        headers = [(b"cache-control", b"private, no-store")]
        await self._send(request, 200, headers, sent, context.bearer, begun, admissions.VIEW, send)
        return True

    async def _has_answered(
        self, request: requests.Request, body: bytes | None, ask: Ask, send: messages.Send
    ) -> bool:
        """Send the answer of ``ask``, and return whether there was one. If not, Django answers."""
        begun = time.perf_counter()
        surface_request = requests.surface_request(request, body)
        if surface_request is None:
            return False
        try:
            with telemetry.agent_request(VIEW):
                answer = await ask(surface_request)
        except Exception:  # Django runs into the same exception, and logs it
            return False
        if answer is None or not self._may_ask(answer.bearer, 1):
            return False
        status = 304 if request.method == "GET" and request.etag == answer.etag else 200
        sent = answer.body() if status == 200 else b""
        await self._send(request, status, answer.headers(status), sent, answer.bearer, begun, VIEW, send)
        return True

    async def _send(
        self,
        request: requests.Request,
        status: int,
        headers: prepared_answers.Headers,
        sent: bytes,
        bearer: credentials.Bearer,
        begun: float,
        view: str,
        send: messages.Send,
    ) -> None:
        """Send a response, and log it."""
        request_id = ids.new()
        headers = headers + answer_headers.of(request.scheme, request_id)
        headers.append((b"content-length", b"%d" % len(sent)))
        if sent:
            headers.append((b"content-type", b"application/json"))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": sent})
        now, seconds = time.time(), time.perf_counter() - begun
        self.notes.add(
            access_log.LogEntry(request, status, len(sent), request_id, bearer.name, now, seconds, view)
        )

    def _may_ask(self, bearer: credentials.Bearer, count: int = 0) -> bool:
        """Return whether the rate limit permits a request. ``count`` is 1 if it is answered here, not by Django."""
        return not self._per_minute or not limits.rates.take(bearer.prefix, self._per_minute, count)
