"""Where may a plugin's HTTP go? To public addresses, unless the installation allows others.

An address is judged after its name was resolved, and the connection goes to the very address that was judged: a
name that answers differently the second time gains nothing. A redirect is another request, and judged like one.

Answers come as they are: a compressed one that nobody asked for is refused, since the client would unpack it to any
size. A plugin that asks for one itself, by ``Accept-Encoding``, has to bound what it unpacks.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from http import cookiejar

import httpx

from toolbelt import conf
from toolbelt.core import addresses

SECONDS = 30.0
SECONDS_TO_CONNECT = 10.0

Resolve = Callable[[str, int], Awaitable[list[str]]]


class AddressRefused(httpx.ConnectError):
    """The operator's to allow: the address is not a public one."""


class Compressed(httpx.ReadError):
    """The server's owner's to put right: it compresses its answers in a way that it was not asked to."""


def client() -> httpx.AsyncClient:
    """Make a plugin's client: with time limits, and behind the gate. It asks no proxy, which would go anywhere."""
    return httpx.AsyncClient(
        transport=Gate(httpx.AsyncHTTPTransport(limits=httpx.Limits(max_keepalive_connections=0))),
        timeout=httpx.Timeout(SECONDS, connect=SECONDS_TO_CONNECT),
        trust_env=False,
        headers={"accept-encoding": "identity"},
        # One client serves all agents: a cookie that one of them was given must not go out with another's request.
        cookies=cookiejar.CookieJar(cookiejar.DefaultCookiePolicy(allowed_domains=[])),
    )


async def _resolve(host: str, port: int) -> list[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class Gate(httpx.AsyncBaseTransport):
    """Lets requests to public addresses through to the transport ``inner``.

    Connections are not kept for later: ``inner`` sees numbers in place of names, and would take two names at one
    address for the same server.
    """

    def __init__(self, inner: httpx.AsyncBaseTransport, resolve: Resolve = _resolve) -> None:
        self._inner, self._resolve = inner, resolve

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Judge the address, send the request there, and refuse an answer that is compressed unasked."""
        response = await self._answer(request)
        codings = {one.lower() for one in response.headers.get_list("content-encoding", split_commas=True)}
        if unasked := codings - {"", "identity", *_accepted(request)}:
            await response.aclose()
            named = ", ".join(sorted(unasked))[:80]
            raise Compressed(f"{request.url.host} answers compressed ({named}) unasked", request=request)
        return response

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        if conf.ALLOW_PRIVATE_HTTP:
            return await self._inner.handle_async_request(request)
        host = request.url.host
        refused: httpx.ConnectError | None = None
        for address in await self._public(request):
            sent = httpx.Request(
                request.method,
                request.url.copy_with(host=address),
                headers=request.headers,
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": host},
            )
            try:
                return await self._inner.handle_async_request(sent)
            except httpx.ConnectError as error:
                refused = error
        raise refused or httpx.ConnectError(f"{host} has no address", request=request)

    async def aclose(self) -> None:
        """Close what is open."""
        await self._inner.aclose()

    async def _public(self, request: httpx.Request) -> list[str]:
        host = request.url.host
        port = request.url.port or (443 if request.url.scheme == "https" else 80)
        try:
            found = await self._resolve(host, port)
        except OSError as error:
            raise httpx.ConnectError(f"{host} cannot be found: {error}", request=request) from error
        for address in found:
            if not addresses.is_public(address):
                raise AddressRefused(
                    f"{host} is at {address}, which is not a public address: an operator can allow it with "
                    "TOOLBELT_ALLOW_PRIVATE_HTTP.",
                    request=request,
                )
        return found


def _accepted(request: httpx.Request) -> set[str]:
    stated = request.headers.get_list("accept-encoding", split_commas=True)
    accepted = {coding.partition(";")[0].strip().lower() for coding in stated}
    return accepted | ({"x-gzip"} if "gzip" in accepted else set())
