"""The preferences of the reader's account, and the time zone of pages: the account's, the browser's or else Toolbelt's.

Preferences are kept in the session, so that no request has to read them from the database. theme.js writes the
browser's zone to a cookie.
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Callable
from typing import Any, cast
from urllib.parse import unquote

from django.conf import settings
from django.contrib.auth import signals
from django.http.response import HttpResponseBase
from django.utils import timezone

from toolbelt.control.people import preferences
from toolbelt.web.kit import http

_KEY = "toolbelt.{}"
COOKIE = "toolbelt-zone"
# The API returns times in UTC.
_API_PREFIX = "/api/"


def chosen(request: http.Request, name: preferences.Name) -> str:
    """Return a preference of the account of this session; empty if it is not set."""
    if settings.SESSION_COOKIE_NAME not in request.COOKIES:
        return ""
    value = str(request.session.get(_KEY.format(name), ""))
    return value if value in preferences.choices(name) else ""


def choose(request: http.Request, name: preferences.Name, value: str) -> None:
    """Store a preference of the account of this session; empty removes it."""
    preferences.choose(cast("int", request.user.pk), name, value)
    request.session[_KEY.format(name)] = value


def time_zone_middleware(
    get_response: Callable[[http.Request], HttpResponseBase],
) -> Callable[[http.Request], HttpResponseBase]:
    """Show times in the reader's zone (a middleware)."""

    def middleware(request: http.Request) -> HttpResponseBase:
        name = ""
        if not request.path_info.startswith(_API_PREFIX):
            name = chosen(request, "time_zone") or browser_zone(request)
        with timezone.override(zoneinfo.ZoneInfo(name) if name else None):
            return get_response(request)

    return middleware


def browser_zone(request: http.Request) -> str:
    """Return the time zone of the browser; empty if it is unknown."""
    name = unquote(request.COOKIES.get(COOKIE, ""))
    return name if name in preferences.choices("time_zone") else ""


def connect() -> None:
    """Read the preferences of an account when it logs in."""
    signals.user_logged_in.connect(_remember, dispatch_uid="toolbelt.preferences")


def _remember(sender: object, request: Any, user: Any, **signal: Any) -> None:
    for name, value in preferences.of(user.pk).items():
        request.session[_KEY.format(name)] = value
