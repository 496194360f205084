"""The HTTP client of plugins, which reaches public addresses only unless the installation allows others.

A host name is resolved once. Its addresses are checked, and the connection goes to a checked address, so a name that
resolves differently the second time gains nothing. Redirects are checked like any other request.

A response that is compressed although the request did not allow it is refused, because the client would decompress it
without a size limit. A plugin that sends ``Accept-Encoding`` itself must limit what it decompresses.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from http import cookiejar

import httpx

from toolbelt import conf
from toolbelt.core import addresses

TIMEOUT_SECONDS = 30.0
CONNECT_TIMEOUT_SECONDS = 10.0

Resolve = Callable[[str, int], Awaitable[list[str]]]


class AddressRefusedError(httpx.ConnectError):
    """The address is not public. An operator can allow private addresses."""


class CompressedError(httpx.ReadError):
    """The server compressed a response although the request did not allow it. The server's owner can fix this."""


def client() -> httpx.AsyncClient:
    """Return a client with timeouts and address checks. It ignores proxies, which could reach any address."""
    return httpx.AsyncClient(
        transport=PublicAddressTransport(
            httpx.AsyncHTTPTransport(limits=httpx.Limits(max_keepalive_connections=0))
        ),
        timeout=httpx.Timeout(TIMEOUT_SECONDS, connect=CONNECT_TIMEOUT_SECONDS),
        trust_env=False,
        headers={"accept-encoding": "identity"},
        # One client serves all agents, so one agent's cookies must not be sent with another's requests.
        cookies=cookiejar.CookieJar(cookiejar.DefaultCookiePolicy(allowed_domains=[])),
    )


async def _resolve(host: str, port: int) -> list[str]:
    resolved = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in resolved))


class PublicAddressTransport(httpx.AsyncBaseTransport):
    """Passes requests to public addresses on to the transport ``inner``.

    Connections are not reused: ``inner`` sees addresses instead of names, and would confuse two servers at one address.
    """

    def __init__(self, inner: httpx.AsyncBaseTransport, resolve: Resolve = _resolve) -> None:
        self._inner, self._resolve = inner, resolve

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Check the address, send the request there, and refuse an unrequested compressed response."""
        response = await self._send(request)
        codings = {
            coding.lower() for coding in response.headers.get_list("content-encoding", split_commas=True)
        }
        if unrequested := codings - {"", "identity", *_accepted_codings(request)}:
            await response.aclose()
            names = ", ".join(sorted(unrequested))[:80]
            raise CompressedError(
                f"{request.url.host} sent an unrequested compressed response ({names})", request=request
            )
        return response

    async def _send(self, request: httpx.Request) -> httpx.Response:
        if conf.ALLOW_PRIVATE_HTTP:
            return await self._inner.handle_async_request(request)
        host = request.url.host
        refused: httpx.ConnectError | None = None
        for address in await self._public_addresses(request):
            direct_request = httpx.Request(
                request.method,
                request.url.copy_with(host=address),
                headers=request.headers,
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": host},
            )
            try:
                return await self._inner.handle_async_request(direct_request)
            except httpx.ConnectError as error:
                refused = error
        raise refused or httpx.ConnectError(f"{host} has no address", request=request)

    async def aclose(self) -> None:
        """Close the inner transport."""
        await self._inner.aclose()

    async def _public_addresses(self, request: httpx.Request) -> list[str]:
        host = request.url.host
        port = request.url.port or (443 if request.url.scheme == "https" else 80)
        try:
            resolved = await self._resolve(host, port)
        except OSError as error:
            raise httpx.ConnectError(f"{host} cannot be resolved: {error}", request=request) from error
        for address in resolved:
            if not addresses.is_public(address):
                raise AddressRefusedError(
                    f"{host} is at {address}, which is not a public address: an operator can allow it with "
                    "TOOLBELT_ALLOW_PRIVATE_HTTP.",
                    request=request,
                )
        return resolved


def _accepted_codings(request: httpx.Request) -> set[str]:
    stated = request.headers.get_list("accept-encoding", split_commas=True)
    accepted = {coding.partition(";")[0].strip().lower() for coding in stated}
    return accepted | ({"x-gzip"} if "gzip" in accepted else set())
