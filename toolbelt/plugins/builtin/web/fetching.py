"""Fetching of addresses: at most five redirects, each checked like the first address, and a body of limited size."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx

from toolbelt import RuntimeAPI, ToolError
from toolbelt.plugins.builtin.web import addresses, settings

MAX_REDIRECTS = 5

_REDIRECTS = (301, 302, 303, 307, 308)
_GZIP = 16 + zlib.MAX_WBITS


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A response and its final address. ``is_complete`` is False if the body was cut off at the limit."""

    url: str
    status: int
    content_type: str
    charset: str
    body: bytes
    is_complete: bool


async def fetch(runtime: RuntimeAPI, address: str, configuration: settings.Settings) -> Fetched:
    """Fetch the address. Raise ToolError with a message for the model; internal details are only logged."""
    url = addresses.check(address)
    try:
        async with asyncio.timeout(configuration.seconds):
            return await _follow(runtime, url, configuration)
    except (TimeoutError, httpx.TimeoutException) as error:
        raise ToolError(
            f"{url.host} took too long to answer. Try again later, or continue without it."
        ) from error
    except httpx.ConnectError as error:
        # The same message for both, so that agents cannot find out which names exist in a private network.
        runtime.log.warning("not connected", url=str(url), error=str(error))
        raise ToolError(
            f"{url.host} cannot be reached: it does not exist, or has no public address."
        ) from error
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        # The client also parses the target of a redirect, and raises for some invalid targets.
        runtime.log.warning("not fetched", url=str(url), error=repr(error))
        raise ToolError(f"{url.host} did not send a valid HTTP response.") from error


async def _follow(runtime: RuntimeAPI, url: httpx.URL, configuration: settings.Settings) -> Fetched:
    headers = {
        "Accept": "text/html, application/xhtml+xml, text/*;q=0.9, application/json;q=0.9",
        "Accept-Encoding": "gzip",
        "User-Agent": configuration.user_agent,
    }
    visited = set()
    for _ in range(MAX_REDIRECTS + 1):
        visited.add(str(url))
        async with runtime.http.stream("GET", str(url), headers=headers, follow_redirects=False) as response:
            target = response.headers.get("location") if response.status_code in _REDIRECTS else None
            if target is None:
                return await _read(response, url, configuration.max_body_bytes)
        url = addresses.check_redirect(url, target)
        if str(url) in visited:
            raise ToolError(f"{url.host} redirects in a circle.")
    raise ToolError(f"There are more than {MAX_REDIRECTS} redirects, the last one to {url}.")


async def _read(response: httpx.Response, url: httpx.URL, max_bytes: int) -> Fetched:
    content_type, _, _ = response.headers.get("content-type", "").partition(";")
    content_type = content_type.strip().lower()
    if content_type and not is_text(content_type):
        raise ToolError(
            f"{url} has the content type {content_type[:80]!r}. Only text can be read: HTML, plain text and JSON."
        )
    packing = response.headers.get("content-encoding", "").strip().lower()
    if packing not in ("", "identity", "gzip", "x-gzip"):
        raise ToolError(f"{url.host} compresses its response as {packing[:80]!r}, which is not supported.")
    body, is_complete = await _bounded(response.aiter_raw(), max_bytes, unpack="gzip" in packing)
    if body and not content_type:
        raise ToolError(f"{url.host} sent no content type, so the response is not read.")
    return Fetched(
        url=str(url),
        status=response.status_code,
        content_type=content_type,
        charset=response.charset_encoding or "",
        body=body,
        is_complete=is_complete,
    )


def is_text(content_type: str) -> bool:
    """Return whether web__fetch reads this kind of content."""
    return (
        content_type.startswith("text/")
        or content_type in ("application/json", "application/xhtml+xml")
        or (content_type.startswith("application/") and content_type.endswith("+json"))
    )


async def _bounded(chunks: AsyncIterator[bytes], max_bytes: int, *, unpack: bool) -> tuple[bytes, bool]:
    """Return at most ``max_bytes`` bytes, and whether they are complete.

    The body is decompressed here, because the client would expand it without a limit. The compressed bytes count too: a
    compressed stream can be endless and contain nothing.
    """
    unpacker = zlib.decompressobj(_GZIP) if unpack else None
    body, received = bytearray(), 0
    async for chunk in chunks:
        received += len(chunk)
        if unpacker is None:
            body += chunk
        else:
            try:
                body += unpacker.decompress(chunk, max_bytes + 1 - len(body))
            except zlib.error as error:
                raise ToolError(
                    "The response is declared as compressed, but cannot be decompressed."
                ) from error
        if len(body) > max_bytes or received > max_bytes:
            return bytes(body[:max_bytes]), False
    return bytes(body), unpacker is None or unpacker.eof or received == 0
