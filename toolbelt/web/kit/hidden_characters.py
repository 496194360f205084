"""Show the hidden characters of a page that affect the text around them: bidirectional and control characters.

Titles, roles and descriptions have many authors, and are on nearly every page and in the admin, so a middleware handles
each page. Values that forms send back are not changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import re2
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

_HIDDEN = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
# Nearly no page has such characters, and RE2 finds that out in a fraction of the time that re takes.
_SEARCH = re2.compile(_HIDDEN.encode())
_CHARACTER = re.compile(_HIDDEN)
_ATTRIBUTE = r"""(?:"[^"]*"|'[^']*'|[^'">])*"""
_MARKUP_PART = re.compile(
    rf"(?P<raw><(?P<name>textarea|script|style)\b{_ATTRIBUTE}>.*?</(?P=name)\s*>)|(?P<tag><{_ATTRIBUTE}>)|[^<]+",
    re.DOTALL | re.IGNORECASE,
)
# Attributes that people read, and that no form sends back.
_READABLE = re.compile(r"""\s(?:title|alt|aria-label|aria-description)=(?:"[^"]*"|'[^']*')""", re.IGNORECASE)


def middleware(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Return the middleware that replaces such characters in every page."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        if (
            isinstance(response, HttpResponse)
            and response.get("Content-Type", "").startswith("text/html")
            and _SEARCH.search(response.content)
        ):
            response.content = page(response.content.decode()).encode()
        return response

    return middleware


def page(html: str) -> str:
    """Return a page with each such character replaced by its code point, such as ``[U+202E]``."""
    return _MARKUP_PART.sub(_reveal_part, html)


def _reveal_part(match: re.Match[str]) -> str:
    text = match.group()
    if match["raw"]:
        return text
    return _READABLE.sub(lambda part: _reveal(part.group()), text) if match["tag"] else _reveal(text)


def _reveal(text: str) -> str:
    return _CHARACTER.sub(lambda character: f"[U+{ord(character.group()):04X}]", text)
