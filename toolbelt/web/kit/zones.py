"""The time zone in which a page shows times: the one of the account, or of the browser, or of the installation.

theme.js writes the browser's zone to a cookie. The account's is kept in the session, so that no request has to ask the
database for it.
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

COOKIE = "toolbelt-zone"
_CHOSEN = "toolbelt.zone"
# Programs get times with their zone, in UTC.
_FOR_PROGRAMS = "/api/"


def activate(
    get_response: Callable[[http.Request], HttpResponseBase],
) -> Callable[[http.Request], HttpResponseBase]:
    """Show times in the reader's zone (a middleware)."""

    def middleware(request: http.Request) -> HttpResponseBase:
        name = "" if request.path_info.startswith(_FOR_PROGRAMS) else reader_zone(request)
        with timezone.override(zoneinfo.ZoneInfo(name) if name else None):
            return get_response(request)

    return middleware


def reader_zone(request: http.Request) -> str:
    """Return the name of the zone of the account, or of the browser; empty if neither is known."""
    return chosen(request) or browser_zone(request)


def browser_zone(request: http.Request) -> str:
    """Return the name of the zone of the browser; empty if it is unknown."""
    return _valid(unquote(request.COOKIES.get(COOKIE, "")))


def chosen(request: http.Request) -> str:
    """Return the zone that the account has; empty if it has none."""
    is_known = settings.SESSION_COOKIE_NAME in request.COOKIES
    return _valid(str(request.session.get(_CHOSEN, ""))) if is_known else ""


def choose(request: http.Request, zone: str) -> None:
    """Let the account of this session have a zone; empty: none."""
    preferences.set_time_zone(cast("int", request.user.pk), zone)
    request.session[_CHOSEN] = zone


def connect() -> None:
    """Read the zone of an account when it logs in."""
    signals.user_logged_in.connect(_remember, dispatch_uid="toolbelt.zone")


def _remember(sender: object, request: Any, user: Any, **signal: Any) -> None:
    if zone := preferences.time_zone(user.pk):
        request.session[_CHOSEN] = zone


def _valid(name: str) -> str:
    return name if name in preferences.time_zones() else ""
