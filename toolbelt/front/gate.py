"""Limit what a request may cost before anything looks at it: the size of its body, the time it takes to arrive, and how
many requests are in progress at once.

Django keeps a whole body, in memory or on disk, before it asks who sent it. So every body is received here first, up to
a limit and within a time. Without a token or a login that is valid, a body may have :data:`MAX_FOR_STRANGERS` bytes.
The API and the MCP endpoint refuse a body that is too large in their own words: they get the request without it.
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
from toolbelt.core import schema
from toolbelt.front import ids, messages, notes
from toolbelt.mcp import heads, protocol
from toolbelt.runtime import access
from toolbelt.web import live

MAX_FOR_STRANGERS = 100_000
# What a form has around the file or the text that it sends.
FORM_BYTES = 100_000
# How many bodies of one address may be on their way at once. One that arrives at once does not count.
MAX_BODIES_OF_ADDRESS = 32
# How long the rest of a refused body is let go, so that its sender can read the answer before the connection ends.
LINGER = 5.0
# When to come again, in seconds.
RETRY_AFTER = 5
# What refused requests are counted under.
VIEW = "gate"

_PAGE = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
    "<h1>{title}</h1><p>{detail}</p><p>Request <code>{request_id}</code></p></html>"
)
_TOKEN = re.compile(r"bearer +(\S+) *", re.IGNORECASE)


class Refusal(NamedTuple):
    """Why a request is not let in: one of the codes of problem details, and the reason in words."""

    code: str
    detail: str


class Head(NamedTuple):
    """What decides about a body, and what is noted of a refused request. ``length`` is None where it is not stated."""

    method: str
    scheme: str
    path: str
    address: str | None
    length: int
    states_length: bool
    authorization: str
    cookie: str

    @property
    def is_for_api(self) -> bool:
        return self.path.startswith(problems.WHERE)

    @property
    def is_for_mcp(self) -> bool:
        return heads.is_here({"path": self.path})

    @property
    def most(self) -> int:
        """Return the largest body that this path takes."""
        if self.is_for_api or self.is_for_mcp:
            return int(conf.API_BODY_BYTES)
        return int(max(conf.API_BODY_BYTES, settings.DATA_UPLOAD_MAX_MEMORY_SIZE)) + FORM_BYTES


class Gate:
    """The gate of one server process, in front of ``application``."""

    def __init__(self, application: messages.Application, taken: notes.Notes) -> None:
        self._application, self._notes = application, taken
        self._most, self._seconds = conf.REQUESTS_AT_ONCE, conf.BODY_SECONDS
        self._in_progress = 0
        self._arriving: collections.Counter[str | None] = collections.Counter()

    async def __call__(self, scope: dict[str, Any], receive: messages.Receive, send: messages.Send) -> None:
        """Let an HTTP request through, or answer why not."""
        head = body_head(scope)
        if head is not None:
            admitted = await self._received(head, receive, send)
            if admitted is None:
                return
            receive, send = admitted
        if self._in_progress >= self._most:
            refusal = Refusal("overloaded", "Too many requests are in progress here: try again in a moment.")
            await self._refuse(head or _head(scope), refusal, send)
            return
        self._in_progress += 1
        is_counted = True

        async def sent(message: messages.Message) -> None:
            nonlocal is_counted
            if is_counted and message["type"] == "http.response.start" and _is_stream(message["headers"]):
                # Streams stay open for hours, and have limits of their own.
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
        """Receive the body, and return how the application gets it and answers; None where it was answered here."""
        discarded = messages.Discarded(receive)
        closing = messages.closing(send, discarded, LINGER)
        if head.is_for_api and not head.states_length:
            return discarded.receive, closing
        limit = await _limit(head)
        if head.length > limit:
            if head.is_for_api or head.is_for_mcp:
                return discarded.receive, closing
            await self._refuse(head, _too_large(limit), closing)
            return None
        if self._arriving[head.address] >= MAX_BODIES_OF_ADDRESS or (self._arriving.total() >= self._most):
            refusal = Refusal("overloaded", "Too many requests are on their way here: try again in a moment.")
            await self._refuse(head, refusal, closing)
            return None
        self._arriving[head.address] += 1
        try:
            async with asyncio.timeout(self._seconds):
                received = await messages.read(discarded.pass_on, limit)
        except TimeoutError:
            refusal = Refusal("request-timeout", f"The body did not arrive within {self._seconds:g} s.")
        except messages.TooMuch:
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
        self._notes.take(
            notes.Note(
                head, status, len(body), request_id, "", time.time(), time.perf_counter() - begun, VIEW
            )
        )


class WsgiGate:
    """The same for a WSGI server, which receives bodies itself: how large one may be, by what it announces."""

    def __init__(self, application: Callable[..., Iterable[bytes]]) -> None:
        self._application = application

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Let a request through, or answer why not. Django reads no more of a body than is announced."""
        length = environ.get("CONTENT_LENGTH") or "0"
        head = Head(
            method=environ["REQUEST_METHOD"],
            scheme=environ["wsgi.url_scheme"],
            path=environ.get("PATH_INFO", ""),
            address=environ.get("REMOTE_ADDR"),
            length=int(length) if length.isdecimal() else 0,
            states_length=True,
            authorization=environ.get("HTTP_AUTHORIZATION", ""),
            cookie=environ.get("HTTP_COOKIE", ""),
        )
        limit = head.most if head.is_for_api or head.length <= MAX_FOR_STRANGERS else _limit_by_sender(head)
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
    """Return the head of a request that has a body; None if it has none."""
    # HTTP/2 marks a body by its frames alone.
    has_body = scope.get("http_version", "1.1") == "2" and scope["method"] in ("POST", "PUT", "PATCH")
    for name, value in scope["headers"]:
        if (name == b"content-length" and value != b"0") or name == b"transfer-encoding":
            has_body = True
    return _head(scope) if has_body else None


def _head(scope: Mapping[str, Any]) -> Head:
    headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
    length = headers.get(b"content-length", "")
    client = scope.get("client")
    return Head(
        method=scope["method"],
        scheme="https" if scope["scheme"] == "https" else "http",
        path=scope["path"],
        address=client[0] if client else None,
        length=int(length) if length.isdecimal() else 0,
        states_length=length.isdecimal() and b"transfer-encoding" not in headers,
        authorization=headers.get(b"authorization", ""),
        cookie="; ".join([value.decode("latin-1") for name, value in scope["headers"] if name == b"cookie"]),
    )


async def _limit(head: Head) -> int:
    """Return how many bytes of a body are taken from its sender."""
    if head.states_length and not MAX_FOR_STRANGERS < head.length <= head.most:
        # However that is answered: small enough for anyone, or too large for everyone.
        return head.most
    return await _limit_in_thread(head)


def _limit_by_sender(head: Head) -> int:
    try:
        return head.most if _is_known(head) else min(MAX_FOR_STRANGERS, head.most)
    finally:
        # The thread is one of many that nobody tells of the end of a request.
        db.connections.close_all()


_limit_in_thread = sync_to_async(_limit_by_sender, thread_sensitive=False)


def _is_known(head: Head) -> bool:
    """Return whether the request has a token or a login that is valid."""
    if head.is_for_api or head.is_for_mcp:
        token = _TOKEN.fullmatch(head.authorization)
        return token is not None and access.recognize(token[1]) is not None
    return live.signed_in_user(live.session_key(parse_cookie(head.cookie))) is not None


def _too_large(limit: int) -> Refusal:
    return Refusal("too-large", f"At most {limit} bytes may be sent: send less at a time, or log in first.")


def answer(head: Head, refusal: Refusal, request_id: str) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    """Return the status, headers and body of a refusal, in the form that the path answers in."""
    status, title = problems.CODES[refusal.code]
    if head.is_for_api:
        problem = problems.HttpProblem(refusal.code, refusal.detail)
        kind, body = problems.MEDIA_TYPE, schema.canonical(problem.document()).encode()
    elif head.is_for_mcp:
        fault = protocol.Fault(protocol.INVALID_REQUEST, refusal.detail, status=status)
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
        (b"x-content-type-options", b"nosniff"),
        (b"x-request-id", request_id.encode()),
    ]
    if status == 503:
        headers.append((b"retry-after", b"%d" % RETRY_AFTER))
    return status, headers, body


def _is_stream(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    return any(
        value.startswith(b"text/event-stream") and name.lower() == b"content-type" for name, value in headers
    )
