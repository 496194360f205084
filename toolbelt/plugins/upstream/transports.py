"""Over what does the official client speak to a server, a process's pipes or HTTP, and how is an end of it noticed?

This is the one module that needs ``mcp`` when it is imported, and it is imported when a connection is opened.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from http import cookiejar
from typing import Any

import anyio
import httpx2
import mcp_types
from mcp.client import stdio, streamable_http

from toolbelt.core import addresses, connections
from toolbelt.plugins.upstream import last_check, pipes, tail

MOST_BYTES = 32 * 1024 * 1024
# A stream of events may be silent for so long; then it is opened anew.
SILENT_SECONDS = 300.0
# For how long a name that was resolved, and judged, is not resolved again.
RESOLVED_SECONDS = 10.0

# How servers say with HTTP 400 that they do not know a session. (MCP asks for 404, whatever the wording.)
_UNKNOWN_SESSION = re.compile(r"session|not initiali[sz]ed", re.IGNORECASE)
# As much of such an answer is looked at.
LONGEST_REFUSAL = 64 * 1024

Resolve = Callable[[str, int], Awaitable[list[str]]]
Ended = Callable[[], None]
Wrong = Callable[[Exception], None]


class AddressRefused(httpx2.ConnectError):
    """The name leads to a platform's own address, which nothing here asks."""


class SessionOver(Exception):
    """The server does not know the session any more: it was restarted, or has forgotten it."""


class Compressed(httpx2.ReadError):
    """The answer is compressed, though none was asked for: unpacked, a thousand bytes can come of each."""


@contextlib.asynccontextmanager
async def process(
    reached: connections.Connection, env: Mapping[str, str], errors: tail.Tail, ended: Ended, wrong: Wrong
) -> AsyncIterator[Any]:
    """Run the command and speak over its pipes. It gets a handful of harmless variables, and those it was given.

    ``wrong`` hears why it is given up, where it writes what nobody can read.
    """
    read_end, write_end = os.pipe()
    reader = os.fdopen(read_end, "rb", buffering=0)
    async with contextlib.AsyncExitStack() as stack:
        with os.fdopen(write_end, "w") as errlog:
            transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: errors, reader)
            stack.callback(transport.close)
            streams = pipes.opened(
                [reached.command, *reached.args],
                env=stdio.get_default_environment() | dict(env),
                cwd=reached.cwd or None,
                stderr=errlog,
                most_bytes=MOST_BYTES,
                wrong=wrong,
            )
            read, write = await stack.enter_async_context(streams)
        yield _Watched(read, ended), write


@contextlib.asynccontextmanager
async def http(
    url: str,
    headers: Mapping[str, str],
    seconds: float,
    answered: Callable[[int], None],
    ended: Ended,
    wrong: Wrong,
    session_over: Ended,
) -> AsyncIterator[Any]:
    """Speak Streamable HTTP with the address; ``answered`` is told the status of each answer.

    ``wrong`` hears why the server is given up, where it answers what is not read; ``session_over`` when it refuses the
    stream of the session that it had kept open.
    """
    # Reading certificates takes a moment that others need not wait for.
    inner = await asyncio.to_thread(httpx2.AsyncHTTPTransport, trust_env=False)
    client = httpx2.AsyncClient(
        transport=Gate(inner, answered=answered, wrong=wrong, session_over=session_over),
        headers=dict(headers),
        timeout=httpx2.Timeout(seconds, read=SILENT_SECONDS),
        trust_env=False,
        cookies=cookiejar.CookieJar(cookiejar.DefaultCookiePolicy(allowed_domains=[])),
    )
    async with (
        client,
        streamable_http.streamable_http_client(url, http_client=client, max_sse_event_size=MOST_BYTES) as (
            read,
            write,
        ),
    ):
        yield _Watched(read, ended), write


class Gate(httpx2.AsyncBaseTransport):
    """Lets requests through to any address but a platform's own: operators say where their servers are.

    A name is resolved once, and the connection goes to the very address that was judged.
    """

    def __init__(
        self,
        inner: httpx2.AsyncBaseTransport,
        *,
        answered: Callable[[int], None] = lambda status: None,
        wrong: Wrong = lambda error: None,
        session_over: Ended = lambda: None,
        resolve: Resolve | None = None,
    ) -> None:
        self._inner, self._resolve = inner, resolve or _resolve
        self._answered, self._wrong, self._session_over = answered, wrong, session_over
        # Whether the server has a stream for GET. Some that have none answer 404, too.
        self._has_stream = False
        # The addresses of each server that was asked lately, and until when they count.
        self._known: dict[tuple[str, int], tuple[float, list[str]]] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Judge the address, send the request there, and hold the answer to a size."""
        refused: httpx2.ConnectError | None = None
        for address in await self._allowed(request):
            sent = httpx2.Request(
                request.method,
                request.url.copy_with(host=address),
                headers=request.headers,
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": request.url.host},
            )
            sent.headers["accept-encoding"] = "identity"
            check = last_check.CURRENT.get()
            if check is not None:
                sent.extensions["trace"] = functools.partial(_before_writing, check)
            try:
                response = await self._inner.handle_async_request(sent)
            except httpx2.ConnectError as error:
                refused = error
                continue
            except Exception:
                if check is None or check.refusal is None:
                    raise
                # An exception would end the connection for all who use it.
                return _not_sent()
            self._answered(response.status_code)
            await self._refuse_compressed(response, request)
            if not response.headers.get("content-type", "").startswith("text/event-stream"):
                response.stream = _Limited(response.stream)
            await self._note_session(request, response, check)
            return response
        raise refused or httpx2.ConnectError(f"{request.url.host} has no address", request=request)

    async def aclose(self) -> None:
        """Close what is open."""
        await self._inner.aclose()

    async def _note_session(
        self, request: httpx2.Request, response: httpx2.Response, check: last_check.LastCheck | None
    ) -> None:
        """Note whether the server refused the session of a call, or of the stream that it had kept open."""
        if streamable_http.MCP_SESSION_ID not in request.headers:
            return
        if request.method == "GET":
            is_refused = self._has_stream and await _refuses_session(response)
            self._has_stream = self._has_stream or response.status_code == 200
            if is_refused:
                self._wrong(
                    SessionOver("The server no longer knows the session: the next call begins a new one.")
                )
                self._session_over()
        elif check is not None and await _refuses_session(response):
            check.is_session_refused = True

    async def _refuse_compressed(self, response: httpx2.Response, request: httpx2.Request) -> None:
        """Raise Compressed before anything of the body is read, which the client would unpack without any limit."""
        stated = response.headers.get_list("content-encoding", split_commas=True)
        codings = {coding.lower() for coding in stated} - {"", "identity"}
        if not codings:
            return
        await response.aclose()
        named = ", ".join(sorted(codings))[:80]
        error = Compressed(
            f"The server answers compressed ({named}), though it was asked not to: such answers are not read.",
            request=request,
        )
        self._wrong(error)
        raise error

    async def _allowed(self, request: httpx2.Request) -> list[str]:
        host = request.url.host
        port = request.url.port or (443 if request.url.scheme == "https" else 80)
        now = asyncio.get_running_loop().time()
        until, found = self._known.get((host, port), (0.0, []))
        if now >= until:
            found = await self._judged(host, port, request)
            self._known[host, port] = now + RESOLVED_SECONDS, found
        return found

    async def _judged(self, host: str, port: int, request: httpx2.Request) -> list[str]:
        try:
            found = await self._resolve(host, port)
        except OSError as error:
            raise httpx2.ConnectError(f"{host} cannot be found: {error}", request=request) from error
        for address in found:
            if addresses.is_metadata(address):
                raise AddressRefused(
                    f"{host} is at {address}, a platform's own address, which nothing here asks.",
                    request=request,
                )
        return found


async def _resolve(host: str, port: int) -> list[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


async def _refuses_session(response: httpx2.Response) -> bool:
    """Return whether the answer says that the session is not known: HTTP 404, or 400 with words to that effect."""
    if response.status_code != 400:
        return response.status_code == 404
    if not isinstance(response.stream, _Limited):
        return False
    # What is read here is kept, for the client to read it, too.
    body = await response.aread()
    try:
        error = json.loads(body)["error"]
        code, said = error.get("code"), str(error.get("message"))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        code, said = None, body[:LONGEST_REFUSAL].decode(errors="replace")
    # Arguments that do not fit may be named after sessions, too.
    return code != mcp_types.INVALID_PARAMS and _UNKNOWN_SESSION.search(said) is not None


async def _before_writing(check: last_check.LastCheck, event: str, about: Mapping[str, Any]) -> None:
    """Make the check when a connection stands and nothing of the request is written. (httpcore's trace extension)"""
    if event.endswith(".send_request_headers.started"):
        await check.make()


def _not_sent() -> httpx2.Response:
    """Return the answer to a request that was refused here: an error for that request alone."""
    error = {"code": mcp_types.INVALID_REQUEST, "message": "The call was refused before it was sent."}
    return httpx2.Response(403, json={"jsonrpc": "2.0", "id": None, "error": error})


class _Limited(httpx2.AsyncByteStream):
    """The body of an answer, up to the size that is read."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for part in self._inner:
            size += len(part)
            if size > MOST_BYTES:
                raise httpx2.ReadError(f"The server answers more than {MOST_BYTES} bytes.")
            yield part

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Watched:
    """A stream of messages that tells when it has ended: the client does not."""

    def __init__(self, inner: Any, ended: Ended) -> None:
        self._inner, self._ended = inner, ended

    @property
    def last_context(self) -> Any:
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> Any:
        try:
            return await self._inner.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._ended()
            raise

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> _Watched:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> _Watched:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.aclose()
