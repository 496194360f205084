"""Validation of the form of an address. The runtime checks whether it is public.

The address is parsed by the library that connects to it, because two parsers may disagree on the host of an address.
"""

from __future__ import annotations

import re

import httpx

from toolbelt import ToolError

MAX_LENGTH = 2_000

_HOST = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?|[0-9a-f]*:[0-9a-f:.]*", re.IGNORECASE)
_UNSOUND = re.compile(r"[\s\\\x00-\x1f\x7f]")


def check(text: str) -> httpx.URL:
    """Return the address without its fragment. Raise ToolError if web__fetch does not support it."""
    text = text.strip()
    if len(text) > MAX_LENGTH:
        raise ToolError(f"The URL has {len(text)} characters; at most {MAX_LENGTH} are allowed.")
    if _UNSOUND.search(text):
        raise ToolError(
            "The URL contains a space, a backslash or a control character. Percent-encode such characters, such as %20."
        )
    try:
        url = httpx.URL(text)
        # Internationalized names are decoded when the host is read, and not before.
        host = url.host
    except (httpx.InvalidURL, ValueError) as error:
        raise ToolError(f"This is not a URL: {error}.") from error
    if url.scheme not in ("http", "https"):
        description = f"of {url.scheme + ':'!r}" if url.scheme else "without a scheme"
        raise ToolError(f"A URL {description} cannot be fetched. It must begin with https:// or http://.")
    if url.userinfo:
        raise ToolError("The URL contains a user name or a password, which are never sent. Leave them out.")
    if not host or not _HOST.fullmatch(url.raw_host.decode("ascii")):
        raise ToolError("The URL has no valid host.")
    if url.port is not None and not 0 < url.port < 65536:
        raise ToolError(f"{url.port} is not a valid port.")
    return url.copy_with(fragment=None)


def check_redirect(origin: httpx.URL, target: str) -> httpx.URL:
    """Return the address that a redirect leads to, checked like the first one."""
    try:
        return check(str(origin.join(target)))
    except (httpx.InvalidURL, ValueError) as error:
        raise ToolError(f"{origin.host} redirects to an invalid URL.") from error
    except ToolError as error:
        raise ToolError(
            f"{origin.host} redirects to a URL that web__fetch does not support. {error}"
        ) from error
