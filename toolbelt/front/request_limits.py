"""Limits on requests before they are processed: the size of a body, the time it takes to arrive, and the number of
concurrent requests.

Django stores a whole body, in memory or on disk, before it authenticates its sender. Every body is therefore received
here first, up to a size and within a time. Without a valid token or login, it may have at most
``limits.UNAUTHENTICATED_BODY_BYTES``. The API and the MCP endpoint return their own errors for bodies that are too
large: they receive the request without its body.
"""

from __future__ import annotations

import asyncio
import collections
import html
import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from asgiref.sync import sync_to_async
from django import db
from django.conf import settings
from django.http import parse_cookie

from toolbelt import conf
from toolbelt.api import problems
from toolbelt.core import limits, schema
from toolbelt.front import access_log, answer_headers, ids, messages
from toolbelt.mcp import protocol, request_head
from toolbelt.runtime import credentials
from toolbelt.web.kit import live

# The overhead of a form around the file or the text that it sends.
FORM_BYTES = 100_000
# The maximum number of bodies that may be arriving from one address at a time.
MAX_BODIES_OF_ADDRESS = 32
# How long the rest of a refused body is discarded, so that its sender can read the response before the connection
# closes.
LINGER = 5.0
# When to try again, in seconds.
RETRY_AFTER = 5
# The name of the view in metrics, for refused requests.
VIEW = "gate"

_PAGE = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
    "<h1>{title}</h1><p>{detail}</p><p>Request <code>{request_id}</code></p></html>"
)
_TOKEN = re.compile(r"bearer +(\S+) *", re.IGNORECASE)


class Refusal(NamedTuple):
    """The refusal of a request: a code of problem details, and a message."""

    code: str
    detail: str


class Head(NamedTuple):
    """The fields of a request that its limits depend on, and that are logged if it is refused."""

    method: str
    scheme: str
    path: str
    address: str | None
    length: int
    states_length: bool
    headers: Iterable[tuple[bytes, bytes]]

    def header(self, name: bytes) -> str:
        """Return a header of the request. In HTTP/2, there may be several for cookies."""
        return b"; ".join([value for key, value in self.headers if key == name]).decode("latin-1")

    @property
    def is_for_api(self) -> bool:
        return self.path.startswith(problems.API_PREFIX)

    @property
    def is_for_mcp(self) -> bool:
        return request_head.is_here({"path": self.path})

    @property
    def maximum(self) -> int:
        """Return the maximum size of a body for this path."""
        if self.is_for_api or self.is_for_mcp:
            return int(conf.API_BODY_BYTES)
        return int(max(conf.API_BODY_BYTES, settings.DATA_UPLOAD_MAX_MEMORY_SIZE)) + FORM_BYTES


class RequestLimits:
    """The limits of a server process, in front of ``application``."""

    def __init__(self, application: messages.Application, log: access_log.AccessLog) -> None:
        self._application, self._access_log = application, log
        self._max_requests, self._seconds = conf.REQUESTS_AT_ONCE, conf.BODY_SECONDS
        self._in_progress = 0
        self._arriving: collections.Counter[str | None] = collections.Counter()

    async def __call__(self, scope: dict[str, Any], receive: messages.Receive, send: messages.Send) -> None:
        """Pass an HTTP request to the application, or refuse it."""
        head = body_head(scope)
        if head is not None:
            admitted = await self._received(head, receive, send)
            if admitted is None:
                return
            receive, send = admitted
        if self._in_progress >= self._max_requests:
            refusal = Refusal("overloaded", "Too many requests are in progress. Try again in a moment.")
            await self._refuse(head or _head(scope, dict(scope["headers"])), refusal, send)
            return
        self._in_progress += 1
        is_counted = True

        async def sent(message: messages.Message) -> None:
            nonlocal is_counted
            if is_counted and message["type"] == "http.response.start" and _is_stream(message["headers"]):
                # Streams stay open for hours, and have their own limits.
                is_counted = False
                self._in_progress -= 1
            await send(message)

        try:
            await self._application(scope, receive, sent)
        finally:
            if is_counted:
                self._in_progress -= 1

    async def _received(
        self, head: Head, receive: messages.Receive, send: messages.Send
    ) -> tuple[messages.Receive, messages.Send] | None:
        """Receive the body. Return the receive and send functions for the application, or None if it was refused."""
        discarded = messages.DiscardedBody(receive)
        closing = messages.closing(send, discarded, LINGER)
        if head.is_for_api and not head.states_length:
            return discarded.receive, closing
        limit = await _limit(head)
        if head.length > limit:
            if head.is_for_api or head.is_for_mcp:
                return discarded.receive, closing
            await self._refuse(head, _too_large(limit), closing)
            return None
        if self._arriving[head.address] >= MAX_BODIES_OF_ADDRESS or (
            self._arriving.total() >= self._max_requests
        ):
            refusal = Refusal("overloaded", "Too many requests are arriving. Try again in a moment.")
            await self._refuse(head, refusal, closing)
            return None
        self._arriving[head.address] += 1
        try:
            async with asyncio.timeout(self._seconds):
                received = await messages.read(discarded.pass_on, limit)
        except TimeoutError:
            refusal = Refusal("request-timeout", f"The body did not arrive within {self._seconds:g} s.")
        except messages.TooMuchError:
            refusal = _too_large(limit)
        else:
            return received[1], send
        finally:
            self._arriving[head.address] -= 1
            if not self._arriving[head.address]:
                del self._arriving[head.address]
        await self._refuse(head, refusal, closing)
        return None

    async def _refuse(self, head: Head, refusal: Refusal, send: messages.Send) -> None:
        begun = time.perf_counter()
        request_id = ids.new()
        status, headers, body = answer(head, refusal, request_id)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if head.method == "HEAD" else body})
        self._access_log.add(
            access_log.LogEntry(
                head, status, len(body), request_id, "", time.time(), time.perf_counter() - begun, VIEW
            )
        )


class WsgiRequestLimits:
    """The limit on the size of a body for WSGI servers, which receive bodies themselves, by the announced length."""

    def __init__(self, application: Callable[..., Iterable[bytes]]) -> None:
        self._application = application

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Pass a request to the application, or refuse it. Django reads no more of a body than was announced."""
        length = environ.get("CONTENT_LENGTH") or "0"
        head = Head(
            method=environ["REQUEST_METHOD"],
            scheme=environ["wsgi.url_scheme"],
            path=environ.get("PATH_INFO", ""),
            address=environ.get("REMOTE_ADDR"),
            length=int(length) if length.isdecimal() else 0,
            states_length=True,
            headers=[
                (b"authorization", environ.get("HTTP_AUTHORIZATION", "").encode("latin-1")),
                (b"cookie", environ.get("HTTP_COOKIE", "").encode("latin-1")),
            ],
        )
        limit = (
            head.maximum
            if head.is_for_api or head.length <= limits.UNAUTHENTICATED_BODY_BYTES
            else _limit_by_sender(head)
        )
        if head.is_for_api or head.length <= limit:
            return self._application(environ, start_response)
        refusal = _too_large(limit)
        status, headers, body = answer(head, refusal, ids.new())
        start_response(
            f"{status} {problems.CODES[refusal.code][1]}",
            [*((name.decode(), value.decode()) for name, value in headers), ("Connection", "close")],
        )
        return [body]


def body_head(scope: Mapping[str, Any]) -> Head | None:
    """Return the head of a request with a body, or None if it has no body."""
    headers = dict(scope["headers"])
    has_body = headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers
    # In HTTP/2, only the frames show whether there is a body.
    is_framed = scope.get("http_version") == "2" and scope["method"] in ("POST", "PUT", "PATCH")
    return _head(scope, headers) if has_body or is_framed else None


def _head(scope: Mapping[str, Any], headers: Mapping[bytes, bytes]) -> Head:
    length = headers.get(b"content-length", b"")
    client = scope.get("client")
    return Head(
        method=scope["method"],
        scheme="https" if scope["scheme"] == "https" else "http",
        path=scope["path"],
        address=client[0] if client else None,
        length=int(length) if length.isdigit() else 0,
        states_length=length.isdigit() and b"transfer-encoding" not in headers,
        headers=scope["headers"],
    )


async def _limit(head: Head) -> int:
    """Return the maximum size of a body from its sender."""
    if head.states_length and not limits.UNAUTHENTICATED_BODY_BYTES < head.length <= head.maximum:
        # The sender does not matter: small enough for anyone, or too large for everyone.
        return head.maximum
    return await _limit_in_thread(head)


def _limit_by_sender(head: Head) -> int:
    try:
        return head.maximum if _is_known(head) else min(limits.UNAUTHENTICATED_BODY_BYTES, head.maximum)
    finally:
        # Django does not close the connections of this thread at the end of a request.
        db.connections.close_all()


_limit_in_thread = sync_to_async(_limit_by_sender, thread_sensitive=False)


def _is_known(head: Head) -> bool:
    """Return whether the request has a token or a login that is valid."""
    if head.is_for_api or head.is_for_mcp:
        token = _TOKEN.fullmatch(head.header(b"authorization"))
        return token is not None and credentials.recognize(token[1]) is not None
    return live.signed_in_user(live.session_key(parse_cookie(head.header(b"cookie")))) is not None


def _too_large(limit: int) -> Refusal:
    return Refusal(
        "too-large", f"The body may have at most {limit} bytes. Send less at a time, or log in first."
    )


def answer(head: Head, refusal: Refusal, request_id: str) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    """Return the status, headers and body of a refusal, in the format of the path's other responses."""
    status, title = problems.CODES[refusal.code]
    if head.is_for_api:
        problem = problems.HttpProblem(refusal.code, refusal.detail)
        kind, body = problems.MEDIA_TYPE, schema.canonical(problem.document()).encode()
    elif head.is_for_mcp:
        fault = protocol.ProtocolError(protocol.INVALID_REQUEST, refusal.detail, status=status)
        kind, body = "application/json", protocol.error(None, fault)
    else:
        words = {"title": title, "detail": refusal.detail, "request_id": request_id}
        kind = "text/html; charset=utf-8"
        body = _PAGE.format(**{name: html.escape(text) for name, text in words.items()}).encode()
    headers = [
        (b"content-type", kind.encode()),
        (b"content-length", b"%d" % len(body)),
        (b"cache-control", b"no-store"),
        (b"content-security-policy", b"default-src 'none'"),
        *answer_headers.of(head.scheme, request_id),
    ]
    if status == 503:
        headers.append((b"retry-after", b"%d" % RETRY_AFTER))
    return status, headers, body


def _is_stream(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    for name, value in headers:  # noqa: SIM110 (a generator takes twice as long)
        if value.startswith(b"text/event-stream") and name.lower() == b"content-type":
            return True
    return False
