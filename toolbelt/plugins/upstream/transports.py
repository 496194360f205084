"""The transports of the official client: a process's pipes or HTTP.

This module requires ``mcp``, so it is only imported when a connection is opened.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from http import cookiejar
from typing import Any

import httpx2
import mcp_types
from mcp.client import stdio, streamable_http
from mcp.client.auth import utils

from toolbelt.core import addresses, connections
from toolbelt.plugins.upstream import (
    answers,
    bodies,
    last_check,
    live_connection,
    pipes,
    ring_buffer,
    streams,
)

# How many scopes of a refusal are read.
MAX_SCOPES = 50
# How many connections to a server are open at a time, and how many of them wait for a request.
MAX_CONNECTIONS, MAX_IDLE = 100, 20
# How long a connection waits for another request. Many servers close theirs after 5 seconds, and a request that is sent
# as they do is lost.
IDLE_SECONDS = 4.0
# How long the answer to a notification is waited for.
NOTIFICATION_SECONDS = 2.0
# How long a stream of events may be silent before it is opened again.
SILENT_SECONDS = 300.0
# How long a name that was resolved and checked is not resolved again.
RESOLVED_SECONDS = 10.0

_SESSION = streamable_http.MCP_SESSION_ID.encode()
# What a server is asked: a request without effect that needs a session. Its id is no other request's.
_PROBE = {"jsonrpc": "2.0", "id": "toolbelt-session", "method": "tools/list", "params": {}}

Resolve = Callable[[str, int], Awaitable[list[str]]]
Notify = Callable[[], None]
GiveUp = Callable[[Exception], None]


# Called with the status of an answer, and when it says to try again.
Answered = Callable[[int, str], None]


class AddressRefusedError(httpx2.ConnectError):
    """The name resolves to a cloud platform's own address, which is never connected to."""


class UnknownSessionError(Exception):
    """The server no longer knows the session, after a restart for example."""


class CompressedError(httpx2.ReadError):
    """The answer is compressed, although that was not requested: each byte could decompress to a thousand."""


@contextlib.asynccontextmanager
async def process(
    settings: connections.Connection,
    env: Mapping[str, str],
    errors: ring_buffer.RingBuffer,
    give_up: GiveUp,
    on_stray: Callable[[bytes], None] = lambda line: None,
    on_exit: Callable[[int], None] = lambda code: None,
) -> AsyncIterator[Any]:
    """Run the command and communicate over its pipes. It gets a few harmless environment variables, and ``env``.

    ``give_up`` is called with the reason if the process writes what is not MCP; ``on_stray`` with each line
    that is not, and ``on_exit`` with the exit code of a process that ended on its own.
    """
    async with contextlib.AsyncExitStack() as stack:
        with os.fdopen(stack.enter_context(_read_from_pipe(errors)), "w") as errlog:
            streams = pipes.opened(
                [settings.command, *settings.args],
                env=stdio.get_default_environment() | dict(env),
                cwd=settings.cwd or None,
                stderr=errlog,
                max_bytes=bodies.MAX_BYTES,
                give_up=give_up,
                on_stray=on_stray,
                on_exit=on_exit,
            )
            read, write = await stack.enter_async_context(streams)
        yield read, write


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
    answered: Answered,
    give_up: GiveUp,
    session_over: Notify,
    session_given: Notify = lambda: None,
    tokens: live_connection.Tokens | None = None,
) -> AsyncIterator[Any]:
    """Communicate over Streamable HTTP. ``answered`` is called with the status of each answer to a message, and
    its Retry-After.

    ``give_up`` is called with the reason if an answer cannot be read, ``session_over`` if the server refuses the stream
    of a session that it kept open before, and ``session_given`` if an answer has a session's id. Requests have one of
    the ``tokens``, if there are any.
    """
    # In a thread, because reading certificates takes a moment.
    inner = await asyncio.to_thread(pool)
    transport = UpstreamTransport(
        inner,
        answered=answered,
        give_up=give_up,
        session_over=session_over,
        session_given=session_given,
        tokens=tokens,
    )
    http_client = client(transport, headers, httpx2.Timeout(seconds, read=SILENT_SECONDS))
    async with (
        http_client,
        streamable_http.streamable_http_client(
            url, http_client=http_client, max_sse_event_size=bodies.MAX_BYTES
        ) as (read, write),
    ):
        yield read, write


def client(
    transport: httpx2.AsyncBaseTransport, headers: Mapping[str, str], timeout: httpx2.Timeout
) -> httpx2.AsyncClient:
    """Return a client that sends these headers, keeps no cookies, and reads nothing from the environment."""
    sent = httpx2.Headers(dict(headers))
    sent["accept-encoding"] = "identity"
    return httpx2.AsyncClient(
        transport=transport,
        headers=sent,
        timeout=timeout,
        trust_env=False,
        cookies=cookiejar.CookieJar(cookiejar.DefaultCookiePolicy(allowed_domains=[])),
    )


def pool(certificates: ssl.SSLContext | None = None) -> httpx2.AsyncHTTPTransport:
    """Return connections that are kept open between requests."""
    return httpx2.AsyncHTTPTransport(
        verify=certificates or httpx2.create_ssl_context(trust_env=False),
        trust_env=False,
        limits=httpx2.Limits(
            max_connections=MAX_CONNECTIONS, max_keepalive_connections=MAX_IDLE, keepalive_expiry=IDLE_SECONDS
        ),
    )


class UpstreamTransport(httpx2.AsyncBaseTransport):
    """Lets requests through to any address except those of the cloud platform: operators choose their servers.

    A name is resolved once, and the connection goes to exactly the address that was checked. With ``public_only``, it
    must be public: for what a server names, and no operator has chosen.
    """

    def __init__(
        self,
        inner: httpx2.AsyncBaseTransport,
        *,
        answered: Answered = lambda status, retry_after: None,
        give_up: GiveUp = lambda error: None,
        session_over: Notify = lambda: None,
        session_given: Notify = lambda: None,
        tokens: live_connection.Tokens | None = None,
        resolve: Resolve | None = None,
        public_only: bool = False,
    ) -> None:
        self._inner, self._resolve, self._tokens = inner, resolve or _resolve, tokens
        self.public_only = public_only
        self._answered, self._give_up, self._session_over = answered, give_up, session_over
        self._session_given = session_given
        # The notifications that are being sent.
        self._notifying: set[asyncio.Task[None]] = set()
        # Whether the server has a stream for GET. Some without one answer 404 as well.
        self._has_stream = False
        # The addresses of each server that was recently asked, and until when they are valid.
        self._resolved: dict[tuple[str, int], tuple[float, list[str]]] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request. A notification is sent in the background, because the client would wait for its answer before
        it sends anything else: a server that is busy would delay all calls.
        """
        if request.method != "POST" or not streams.IS_NOTIFICATION.get():
            return await self._authorized(request)
        task = asyncio.create_task(self._notify(request))
        self._notifying.add(task)
        task.add_done_callback(self._notifying.discard)
        return httpx2.Response(202, request=request)

    async def _notify(self, request: httpx2.Request) -> None:
        try:
            async with asyncio.timeout(NOTIFICATION_SECONDS):
                response = await self._authorized(request)
                await response.aclose()
        except (TimeoutError, httpx2.TransportError):
            # If the server cannot be reached, the next call finds out.
            pass

    async def _authorized(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request with the token of the sign-in; once more if the server refuses the token."""
        if self._tokens is None:
            return await self._send(request)
        check = last_check.CURRENT.get()
        try:
            token = await self._tokens.current()
            response = await self._send(_with_token(request, token))
            if scopes := scopes_demanded(response):
                await response.aclose()
                return self._refused(await self._tokens.demanded(scopes), check)
            if response.status_code != live_connection.HTTP_UNAUTHORIZED:
                return response
            renewed = await self._tokens.renewed(token)
            if renewed == token:
                return response
            await response.aclose()
        except live_connection.UnreachableError as error:
            return self._refused(error, check)
        if check is not None:
            check.again()
        return await self._send(_with_token(request, renewed))

    def _refused(
        self, error: live_connection.UnreachableError, check: last_check.LastCheck | None
    ) -> httpx2.Response:
        """Return the answer to a request without a sufficient token, and note why."""
        # As an exception, it would end the connection for all its users.
        if check is None or not isinstance(error, live_connection.ScopesNeededError):
            self._give_up(error)
        if check is not None:
            check.refusal = error
        return _not_sent()

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        """Check the address, send the request there, and limit the size of the answer."""
        check = last_check.CURRENT.get()
        refused: httpx2.ConnectError | None = None
        for address in await self._allowed(request):
            try:
                with _addressed(request, address, check):
                    response = await self._inner.handle_async_request(request)
            except httpx2.ConnectError as error:
                refused = httpx2.ConnectError(str(bodies.first_cause(error)), request=request)
                refused.__cause__ = bodies.first_cause(error)
                continue
            except Exception as error:
                if check is not None and check.refusal is not None:
                    # An exception would end the connection for all its users.
                    return _not_sent()
                raise bodies.explained(error) from error
            if request.method == "POST":
                # Not of the stream for GET, which a server need not have, and opens while a call is running.
                self._answered(response.status_code, response.headers.get("retry-after", ""))
                if check is not None:
                    check.note_status(response.status_code, response.headers.get("retry-after", ""))
            headers = {name.lower(): value for name, value in response.headers.raw}
            if _SESSION in headers:
                self._session_given()
            if b"content-encoding" in headers:
                await self._refuse_compressed(response, request)
            ask = self._asking(request, check)
            if self._tokens is not None and response.status_code == live_connection.HTTP_UNAUTHORIZED:
                # It refuses the token, whatever it says of a session.
                ask = None
            if headers.get(b"content-type", b"").startswith(b"text/event-stream"):
                response.stream = bodies.Events(response.stream, check, ask)
            elif request.method == "POST" and response.status_code == 200:
                id_ = check.request_id if check is not None else await _id_of(request)
                response.stream = bodies.Answer(response.stream, id_, ask)
            else:
                response.stream = bodies.Limited(response.stream)
            if request.method == "GET" and _has_session(request):
                await self._note_stream(response)
            elif ask is not None and await _may_refuse_session(response):
                await ask(has_run=False)
            return response
        # Not if this request follows one that was written, such as one for the rest of its answer.
        if check is not None and not check.is_made:
            check.has_not_run = True
        raise refused or httpx2.ConnectError(f"{request.url.host} has no address", request=request)

    async def is_public(self, url: str) -> bool:
        """Return whether the server at this URL has a public address."""
        return any(map(addresses.is_public, await self._allowed(httpx2.Request("GET", url))))

    async def aclose(self) -> None:
        """Close all connections."""
        for task in self._notifying:
            task.cancel()
        await self._inner.aclose()

    async def _note_stream(self, response: httpx2.Response) -> None:
        """Note whether the server opened the stream of a session, or refuses it after it kept it open before."""
        if self._has_stream and await _may_refuse_session(response):
            self._end_session()
        self._has_stream = self._has_stream or response.status_code == 200

    def _end_session(self) -> None:
        """Report that the session is lost, so that the next call begins a new one."""
        self._give_up(
            UnknownSessionError("The server no longer knows the session: the next call begins a new one.")
        )
        self._session_over()

    def _asking(self, request: httpx2.Request, check: last_check.LastCheck | None) -> bodies.Ask | None:
        """Return what finds out, and notes, whether the session of a call is lost; None if it has none."""
        if check is None or request.method != "POST" or not _has_session(request):
            return None

        async def ask(*, has_run: bool) -> None:
            if check.status not in answers.GONE and not await self._has_forgotten(request):
                return
            if has_run:
                self._end_session()
            else:
                check.has_not_run = True

        return ask

    async def _has_forgotten(self, request: httpx2.Request) -> bool:
        """Ask the server whether it knows the session of a request, and return whether it does not."""
        headers = [(name, value) for name, value in request.headers.raw if name.lower() != b"content-length"]
        probe = httpx2.Request("POST", request.url, headers=headers, json=_PROBE)
        try:
            async with asyncio.timeout(NOTIFICATION_SECONDS):
                with _addressed(probe, (await self._allowed(probe))[0], None):
                    response = await self._inner.handle_async_request(probe)
                try:
                    head = b""
                    async for part in response.aiter_raw():
                        head += part
                        if len(head) > answers.MAX_REFUSAL_BYTES or answers.is_refusal(
                            response.status_code, head
                        ):
                            break
                finally:
                    await response.aclose()
        except (TimeoutError, OSError, LookupError, httpx2.TransportError):
            return False
        return answers.is_refusal(response.status_code, head)

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
        if not streams.IS_NOTIFICATION.get():
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
            if self.public_only and not addresses.is_public(address):
                raise AddressRefusedError(
                    f"{host} is at {address}, which is not a public address, but a public server names it: an"
                    " administrator can allow it with TOOLBELT_ALLOW_PRIVATE_HTTP.",
                    request=request,
                )
        return resolved


@contextlib.contextmanager
def _addressed(request: httpx2.Request, address: str, check: last_check.LastCheck | None) -> Iterator[None]:
    """Direct the request to this address of its host, with the last check before anything of it is written.

    Raise RemoteProtocolError, when it is sent, if its response was read with the one before: it was not requested.
    """
    has_read = asyncio.Event()

    async def trace(event: str, info: Mapping[str, Any]) -> None:
        match event:
            case "http11.send_request_headers.started" if check is not None:
                await check.make()
            case "http11.receive_response_headers.started":
                # Set once something is awaited, which only reading from the socket does.
                asyncio.get_running_loop().call_soon(has_read.set)
            case "http11.receive_response_headers.complete" if not has_read.is_set():
                raise httpx2.RemoteProtocolError("The server sent a response that was not requested.")

    url = request.url
    request.url = _at(url, address)
    request.extensions = {**request.extensions, "sni_hostname": url.host, "trace": trace}
    try:
        yield
    finally:
        # What follows the response compares its address with the server's, such as a redirect.
        request.url = url


@functools.lru_cache(256)
def _at(url: httpx2.URL, address: str) -> httpx2.URL:
    return url.copy_with(host=address)


async def _resolve(host: str, port: int) -> list[str]:
    resolved = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in resolved))


def _with_token(request: httpx2.Request, token: str) -> httpx2.Request:
    request.headers["authorization"] = f"Bearer {token}"
    return request


def _has_session(request: httpx2.Request) -> bool:
    return streamable_http.MCP_SESSION_ID in request.headers


async def _may_refuse_session(response: httpx2.Response) -> bool:
    """Return whether a response that is an error may mean that the session is unknown."""
    if response.status_code < 400 or response.status_code in answers.GONE:
        return response.status_code in answers.GONE
    try:
        # The body is kept, so that the client can read it as well.
        return answers.is_refusal(response.status_code, await response.aread())
    except (httpx2.StreamError, httpx2.TransportError):
        return False


async def _id_of(request: httpx2.Request) -> Any:
    """Return the id of a request that is no call, such as the probe; None if it has none."""
    # After a redirect, the client has it as a stream only.
    await request.aread()
    return next((document.get("id") for document in answers.documents(request.content)), None)


def scopes_demanded(response: httpx2.Response) -> list[str]:
    """Return the scopes that a request lacks, if the server says so (RFC 6750, 3.1)."""
    if response.status_code != 403:
        return []
    if utils.extract_field_from_www_auth(response, "error") != "insufficient_scope":
        return []
    scopes = (utils.extract_scope_from_www_auth(response) or "").split(" ")[:MAX_SCOPES]
    return [scope for scope in scopes if connections.is_scope(scope)]


def _not_sent() -> httpx2.Response:
    """Return the answer to a request that was refused here: an error for that request alone."""
    error = {"code": mcp_types.INVALID_REQUEST, "message": "The call was refused before it was sent."}
    return httpx2.Response(403, json={"jsonrpc": "2.0", "id": None, "error": error})
