"""What is at this address? At most five redirects, each checked as the first address was; a body of bounded size."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx

from toolbelt import RuntimeAPI, ToolError
from toolbelt.plugins.builtin.web import addresses, settings

MOST_REDIRECTS = 5

_REDIRECTS = (301, 302, 303, 307, 308)
_GZIP = 16 + zlib.MAX_WBITS


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """What came, from where after all redirects. ``whole`` is False where the body was cut at the limit."""

    url: str
    status: int
    content_type: str
    charset: str
    body: bytes
    whole: bool


async def fetch(runtime: RuntimeAPI, address: str, chosen: settings.Settings) -> Fetched:
    """Fetch it. Raises :class:`ToolError` in words for a model; what may be internal goes to the log alone."""
    url = addresses.check(address)
    try:
        async with asyncio.timeout(chosen.seconds):
            return await _follow(runtime, url, chosen)
    except (TimeoutError, httpx.TimeoutException) as error:
        raise ToolError(f"{url.host} took too long to answer. Try again later, or do without.") from error
    except httpx.ConnectError as error:
        # One answer for both: whether a name exists inside of a private network is not for the agent to find out.
        runtime.log.warning("not connected", url=str(url), error=str(error))
        raise ToolError(
            f"{url.host} cannot be reached: it is not there, or not at a public address."
        ) from error
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        # The client looks at where a redirect leads too, and stumbles over some of what it finds.
        runtime.log.warning("not fetched", url=str(url), error=repr(error))
        raise ToolError(f"{url.host} did not answer as a web server does.") from error


async def _follow(runtime: RuntimeAPI, url: httpx.URL, chosen: settings.Settings) -> Fetched:
    headers = {
        "Accept": "text/html, application/xhtml+xml, text/*;q=0.9, application/json;q=0.9",
        "Accept-Encoding": "gzip",
        "User-Agent": chosen.user_agent,
    }
    seen = set()
    for _ in range(MOST_REDIRECTS + 1):
        seen.add(str(url))
        async with runtime.http.stream("GET", str(url), headers=headers, follow_redirects=False) as response:
            target = response.headers.get("location") if response.status_code in _REDIRECTS else None
            if target is None:
                return await _read(response, url, chosen.most_bytes)
        url = addresses.check_redirect(url, target)
        if str(url) in seen:
            raise ToolError(f"{url.host} redirects in a circle.")
    raise ToolError(f"There are more than {MOST_REDIRECTS} redirects, the last of them to {url}.")


async def _read(response: httpx.Response, url: httpx.URL, most_bytes: int) -> Fetched:
    content_type, _, _ = response.headers.get("content-type", "").partition(";")
    content_type = content_type.strip().lower()
    if content_type and not is_text(content_type):
        raise ToolError(
            f"{url} is {content_type[:80]!r}, and only text can be read: HTML, plain text and its kin, JSON."
        )
    packing = response.headers.get("content-encoding", "").strip().lower()
    if packing not in ("", "identity", "gzip", "x-gzip"):
        raise ToolError(f"{url.host} sends its answer packed as {packing[:80]!r}, which cannot be read.")
    body, whole = await _bounded(response.aiter_raw(), most_bytes, unpack="gzip" in packing)
    if body and not content_type:
        raise ToolError(f"{url.host} does not say what kind of content this is, so it is not read.")
    return Fetched(
        url=str(url),
        status=response.status_code,
        content_type=content_type,
        charset=response.charset_encoding or "",
        body=body,
        whole=whole,
    )


def is_text(content_type: str) -> bool:
    """Say whether it is a kind of content that web__fetch reads."""
    return (
        content_type.startswith("text/")
        or content_type in ("application/json", "application/xhtml+xml")
        or (content_type.startswith("application/") and content_type.endswith("+json"))
    )


async def _bounded(chunks: AsyncIterator[bytes], most: int, *, unpack: bool) -> tuple[bytes, bool]:
    """Take at most so many bytes; say whether that was all.

    It unpacks by itself, since the client's own unpacking makes a thousand bytes of one before anybody counts them.
    What comes in counts too: a packed stream can go on for ever and hold nothing.
    """
    unpacker = zlib.decompressobj(_GZIP) if unpack else None
    body, came = bytearray(), 0
    async for chunk in chunks:
        came += len(chunk)
        if unpacker is None:
            body += chunk
        else:
            try:
                body += unpacker.decompress(chunk, most + 1 - len(body))
            except zlib.error as error:
                raise ToolError("The answer says that it is packed, and cannot be unpacked.") from error
        if len(body) > most or came > most:
            return bytes(body[:most]), False
    return bytes(body), unpacker is None or unpacker.eof or came == 0
