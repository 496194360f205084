"""The browsers that people are logged in with: noted while they are used, and named in words."""

from __future__ import annotations

import contextlib
import re
import time
from typing import Any

from django import db
from django.http.response import HttpResponseBase
from django.utils.deprecation import MiddlewareMixin

from toolbelt.control.people import logins
from toolbelt.web.kit import http, live

# How often the use of a login is stored, in seconds.
EVERY = 300
_NOTED = "toolbelt.noted"
# The first that is found names it: most browsers call themselves by the names of others, too.
_BROWSERS = (
    ("Edge", r"Edg(e|A|iOS)?/"),
    ("Opera", r"OPR/"),
    ("Samsung Internet", r"SamsungBrowser/"),
    ("Firefox", r"(Firefox|FxiOS)/"),
    ("Chrome", r"(Chrome|CriOS|HeadlessChrome)/"),
    ("Safari", r"Version/.*Safari/"),
)
_SYSTEMS = (
    ("iPhone", r"iPhone"),
    ("iPad", r"iPad"),
    ("Android", r"Android"),
    ("Windows", r"Windows"),
    ("macOS", r"Mac OS X|Macintosh"),
    ("ChromeOS", r"CrOS"),
    ("Linux", r"Linux"),
)


class Middleware(MiddlewareMixin):
    """Note which browser uses a login, from which address."""

    async_capable = False

    def process_response(self, request: http.Request, response: HttpResponseBase) -> HttpResponseBase:
        """Store it, unless it was stored lately."""
        session = request.session
        # Open pages ask by themselves whether there is something new.
        if not session.accessed or response.status_code >= 500 or request.path == live.PATH:
            return response
        user: Any = request.user
        if not user.is_authenticated or not session.session_key:
            return response
        key, at = session.get(_NOTED) or ("", 0)
        if key != session.session_key or time.time() - at >= EVERY:
            # A database that is busy must not make a page fail.
            with contextlib.suppress(db.OperationalError):
                note(request)
        return response


def note(request: http.Request) -> None:
    """Note that the person of a request uses their login now."""
    user: Any = request.user
    key = str(request.session.session_key)
    browser, address = request.headers.get("User-Agent", ""), request.META.get("REMOTE_ADDR") or ""
    logins.note(user.pk, key, browser, address)
    request.session[_NOTED] = [key, time.time()]


def name(browser: str) -> str:
    """Return what a browser calls itself in two words: "Firefox on Linux"."""
    program = next((word for word, pattern in _BROWSERS if re.search(pattern, browser)), "")
    system = next((word for word, pattern in _SYSTEMS if re.search(pattern, browser)), "")
    program = program or browser.partition("/")[0].partition(" ")[0][:40]
    return f"{program} on {system}" if program and system else program or system or "Unknown browser"
