"""May this address be fetched, by the way it is written? Whether it is a public one is the runtime's to judge.

It is read by the library that connects to it: two readers of one address may disagree on its host.
"""

from __future__ import annotations

import re

import httpx

from toolbelt import ToolError

LONGEST = 2_000

_HOST = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?|[0-9a-f]*:[0-9a-f:.]*", re.IGNORECASE)
_UNSOUND = re.compile(r"[\s\\\x00-\x1f\x7f]")


def check(text: str) -> httpx.URL:
    """Read an address, without its fragment. Raises :class:`ToolError` for one that is not for web__fetch."""
    text = text.strip()
    if len(text) > LONGEST:
        raise ToolError(f"The URL has {len(text)} characters, and {LONGEST} are the most.")
    if _UNSOUND.search(text):
        raise ToolError("The URL holds a space, a backslash or a control character: write such signs as %20.")
    try:
        url = httpx.URL(text)
        # Names of other scripts are decoded when the host is read, and not before.
        named = url.host
    except (httpx.InvalidURL, ValueError) as error:
        raise ToolError(f"This is not a URL: {error}.") from error
    if url.scheme not in ("http", "https"):
        said = f"of {url.scheme + ':'!r}" if url.scheme else "without a scheme"
        raise ToolError(f"A URL {said} cannot be fetched: it must begin with https:// or http://.")
    if url.userinfo:
        raise ToolError("The URL holds a user name or a password, which are never sent. Leave them out.")
    if not named or not _HOST.fullmatch(url.raw_host.decode("ascii")):
        raise ToolError("The URL names no host that there can be.")
    if url.port is not None and not 0 < url.port < 65536:
        raise ToolError(f"There is no port {url.port}.")
    return url.copy_with(fragment=None)


def check_redirect(origin: httpx.URL, target: str) -> httpx.URL:
    """Read where a redirect leads, with the eyes of :func:`check`."""
    try:
        return check(str(origin.join(target)))
    except (httpx.InvalidURL, ValueError) as error:
        raise ToolError(f"{origin.host} redirects to what is not a URL.") from error
    except ToolError as error:
        raise ToolError(f"{origin.host} redirects to where web__fetch does not go. {error}") from error
