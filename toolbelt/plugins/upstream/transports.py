"""The transports of the official client: a process's pipes or HTTP, and how their end is noticed.

This module requires ``mcp``, so it is only imported when a connection is opened.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from http import cookiejar
from typing import Any

import anyio
import httpx2
import mcp_types
from mcp.client import stdio, streamable_http

from toolbelt.core import addresses, connections
from toolbelt.plugins.upstream import last_check, network, pipes, posting, ring_buffer

MAX_BYTES = 32 * 1024 * 1024
# How long a stream of events may be silent before it is opened again.
SILENT_SECONDS = 300.0
# How long a name that was resolved and checked is not resolved again.
RESOLVED_SECONDS = 10.0

# How servers report with HTTP 400 that they do not know a session. (MCP requires 404, with any wording.)
_UNKNOWN_SESSION = re.compile(r"session|not initiali[sz]ed", re.IGNORECASE)
_SESSION = streamable_http.MCP_SESSION_ID.encode()
# How much of such an answer is searched.
MAX_REFUSAL_LENGTH = 64 * 1024

Resolve = Callable[[str, int], Awaitable[list[str]]]
Notify = Callable[[], None]
GiveUp = Callable[[Exception], None]


class AddressRefusedError(httpx2.ConnectError):
    """The name resolves to a cloud platform's own address, which is never connected to."""


class UnknownSessionError(Exception):
    """The server no longer knows the session, after a restart for example."""


class TooLargeError(httpx2.StreamError):
    """The answer is larger than what is read: an error of this request alone, unlike errors of the network."""


class CompressedError(httpx2.ReadError):
    """The answer is compressed, although that was not requested: each byte could decompress to a thousand."""


@contextlib.asynccontextmanager
async def process(
    settings: connections.Connection,
    env: Mapping[str, str],
    errors: ring_buffer.RingBuffer,
    on_end: Notify,
    give_up: GiveUp,
    on_stray: Callable[[bytes], None] = lambda line: None,
    on_exit: Callable[[int], None] = lambda code: None,
) -> AsyncIterator[Any]:
    """Run the command and communicate over its pipes. It gets a few harmless environment variables, and ``env``.

    ``give_up`` is called with the reason if the process writes what is not MCP; ``on_stray`` with each line
    that is not. ``on_end`` is called at the end, and ``on_exit`` with the exit code of a process that ended on its own.
    """
    async with contextlib.AsyncExitStack() as stack:
        with os.fdopen(stack.enter_context(_read_from_pipe(errors)), "w") as errlog:
            streams = pipes.opened(
                [settings.command, *settings.args],
                env=stdio.get_default_environment() | dict(env),
                cwd=settings.cwd or None,
                stderr=errlog,
                max_bytes=MAX_BYTES,
                give_up=give_up,
                on_stray=on_stray,
                on_exit=on_exit,
            )
            read, write = await stack.enter_async_context(streams)
        yield _Watched(read, on_end), write


@contextlib.contextmanager
def _read_from_pipe(errors: ring_buffer.RingBuffer) -> Iterator[int]:
    """Create a pipe whose output goes to ``errors``, and yield its write end, which the caller closes.

    Not with connect_read_pipe: uvloop's closes the number twice, and another thread may have opened a file under it
    in between (https://github.com/MagicStack/uvloop/issues/763). Not with a socket either: a shell script cannot open
    one as /dev/stderr.
    """
    loop = asyncio.get_running_loop()
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)

    def read() -> None:
        try:
            data = os.read(read_end, 65_536)
        except BlockingIOError:
            return
        if data:
            errors.data_received(data)
        else:
            loop.remove_reader(read_end)

    loop.add_reader(read_end, read)
    try:
        yield write_end
    finally:
        loop.remove_reader(read_end)
        os.close(read_end)


@contextlib.asynccontextmanager
async def http(
    url: str,
    headers: Mapping[str, str],
    seconds: float,
    answered: Callable[[int], None],
    on_end: Notify,
    give_up: GiveUp,
    session_over: Notify,
    session_given: Notify = lambda: None,
) -> AsyncIterator[Any]:
    """Communicate over Streamable HTTP. ``answered`` is called with the status of each answer to a message.

    ``give_up`` is called with the reason if an answer cannot be read, ``on_end`` at the end, ``session_over`` if the
    server refuses the stream of a session that it kept open before, and ``session_given`` if an answer has a session's
    id.
    """
    # In a thread, because reading certificates takes a moment.
    inner = await asyncio.to_thread(network.Transport)
    transport = UpstreamTransport(
        inner, answered=answered, give_up=give_up, session_over=session_over, session_given=session_given
    )
    sent = httpx2.Headers(dict(headers))
    sent["accept-encoding"] = "identity"
    client = httpx2.AsyncClient(
        transport=transport,
        headers=sent,
        timeout=httpx2.Timeout(seconds, read=SILENT_SECONDS),
        trust_env=False,
        cookies=cookiejar.CookieJar(cookiejar.DefaultCookiePolicy(allowed_domains=[])),
    )
    async with (
        client,
        posting.connected(url, client, transport, lambda: transport.session_id, MAX_BYTES) as (read, write),
    ):
        yield _Watched(read, on_end), write


class UpstreamTransport(httpx2.AsyncBaseTransport):
    """Lets requests through to any address except those of the cloud platform: operators choose their servers.

    A name is resolved once, and the connection goes to exactly the address that was checked.
    """

    def __init__(
        self,
        inner: httpx2.AsyncBaseTransport,
        *,
        answered: Callable[[int], None] = lambda status: None,
        give_up: GiveUp = lambda error: None,
        session_over: Notify = lambda: None,
        session_given: Notify = lambda: None,
        resolve: Resolve | None = None,
    ) -> None:
        self._inner, self._resolve = inner, resolve or _resolve
        self._answered, self._give_up, self._session_over = answered, give_up, session_over
        self._session_given = session_given
        # The id of the session, as the official client sends it.
        self.session_id: str | None = None
        # Whether the server has a stream for GET. Some without one answer 404 as well.
        self._has_stream = False
        # The addresses of each server that was recently asked, and until when they are valid.
        self._resolved: dict[tuple[str, int], tuple[float, list[str]]] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Check the address, send the request there, and limit the size of the answer."""
        self.session_id = request.headers.get(streamable_http.MCP_SESSION_ID)
        check = last_check.CURRENT.get()
        # A request that follows a redirect has the extensions of the one before.
        request.extensions.pop(network.BEFORE_WRITING, None)
        if check is not None:
            request.extensions[network.BEFORE_WRITING] = check.make
        refused: httpx2.ConnectError | None = None
        for address in await self._allowed(request):
            request.extensions[network.ADDRESS] = address
            try:
                response = await self._inner.handle_async_request(request)
            except httpx2.ConnectError as error:
                refused = error
                continue
            except Exception:
                if check is None or check.refusal is None:
                    raise
                # An exception would end the connection for all its users.
                return _not_sent()
            if request.method == "POST":
                # Not of the stream for GET, which a server need not have, and opens while a call is running.
                self._answered(response.status_code)
            headers = {name.lower(): value for name, value in response.headers.raw}
            if _SESSION in headers:
                self._session_given()
            if b"content-encoding" in headers:
                await self._refuse_compressed(response, request)
            if not headers.get(b"content-type", b"").startswith(b"text/event-stream"):
                response.stream = _Limited(response.stream)
            await self._note_session(request, response, check)
            return response
        # Not if this request follows one that was written, such as one for the rest of its answer.
        if check is not None and not check.is_made:
            check.has_not_run = True
        raise refused or httpx2.ConnectError(f"{request.url.host} has no address", request=request)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._inner.aclose()

    async def _note_session(
        self, request: httpx2.Request, response: httpx2.Response, check: last_check.LastCheck | None
    ) -> None:
        """Note whether the server refused the session of a call, or of the stream that it kept open before."""
        if streamable_http.MCP_SESSION_ID not in request.headers:
            return
        if request.method == "GET":
            is_refused = self._has_stream and await _refuses_session(response)
            self._has_stream = self._has_stream or response.status_code == 200
            if is_refused:
                self._give_up(
                    UnknownSessionError(
                        "The server no longer knows the session: the next call begins a new one."
                    )
                )
                self._session_over()
        elif check is not None and await _refuses_session(response):
            check.has_not_run = True

    async def _refuse_compressed(self, response: httpx2.Response, request: httpx2.Request) -> None:
        """Raise CompressedError before the body is read, which the client would decompress without a limit."""
        stated = response.headers.get_list("content-encoding", split_commas=True)
        codings = {coding.lower() for coding in stated} - {"", "identity"}
        if not codings:
            return
        await response.aclose()
        coding_names = ", ".join(sorted(codings))[:80]
        error = CompressedError(
            f"The server compressed its response ({coding_names}) although Toolbelt requested none,"
            " so it was not read.",
            request=request,
        )
        self._give_up(error)
        raise error

    async def _allowed(self, request: httpx2.Request) -> list[str]:
        host = request.url.host
        port = request.url.port or (443 if request.url.scheme == "https" else 80)
        now = asyncio.get_running_loop().time()
        until, resolved = self._resolved.get((host, port), (0.0, []))
        if now >= until:
            resolved = await self._check_address(host, port, request)
            self._resolved[host, port] = now + RESOLVED_SECONDS, resolved
        return resolved

    async def _check_address(self, host: str, port: int, request: httpx2.Request) -> list[str]:
        try:
            resolved = await self._resolve(host, port)
        except OSError as error:
            raise httpx2.ConnectError(f"{host} cannot be resolved: {error}", request=request) from error
        for address in resolved:
            if addresses.is_metadata(address):
                raise AddressRefusedError(
                    f"{host} resolves to {address}, a cloud platform's own address, which is never connected to.",
                    request=request,
                )
        return resolved


async def _resolve(host: str, port: int) -> list[str]:
    resolved = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in resolved))


async def _refuses_session(response: httpx2.Response) -> bool:
    """Return whether the answer means that the session is unknown: HTTP 404, or 400 with such a message."""
    if response.status_code != 400:
        return response.status_code == 404
    if not isinstance(response.stream, _Limited):
        return False
    # The body is kept, so that the client can read it as well.
    body = await response.aread()
    try:
        error = json.loads(body)["error"]
        code, text = error.get("code"), str(error.get("message"))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        code, text = None, body[:MAX_REFUSAL_LENGTH].decode(errors="replace")
    # Invalid arguments may mention sessions as well.
    return code != mcp_types.INVALID_PARAMS and _UNKNOWN_SESSION.search(text) is not None


def _not_sent() -> httpx2.Response:
    """Return the answer to a request that was refused here: an error for that request alone."""
    error = {"code": mcp_types.INVALID_REQUEST, "message": "The call was refused before it was sent."}
    return httpx2.Response(403, json={"jsonrpc": "2.0", "id": None, "error": error})


class _Limited(httpx2.AsyncByteStream):
    """The body of an answer, up to the maximum size."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._inner:
            size += len(chunk)
            if size > MAX_BYTES:
                raise TooLargeError(f"The server's answer has more than {MAX_BYTES} bytes.")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Watched:
    """A stream of messages that reports its end, which the client does not."""

    def __init__(self, inner: Any, on_end: Notify) -> None:
        self._inner, self._on_end = inner, on_end

    @property
    def last_context(self) -> Any:
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> Any:
        try:
            return await self._inner.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._on_end()
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
