"""The time zone in which a page shows times: the one of the account, or of the browser, or of the installation.

theme.js writes the browser's zone to a cookie.
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Callable
from urllib.parse import unquote

from django.http.response import HttpResponseBase
from django.utils import timezone

from toolbelt.control.people.preferences import choices
from toolbelt.web.kit import http, preferences

COOKIE = "toolbelt-zone"
# Programs get times with their zone, in UTC.
_FOR_PROGRAMS = "/api/"


def activate(
    get_response: Callable[[http.Request], HttpResponseBase],
) -> Callable[[http.Request], HttpResponseBase]:
    """Show times in the reader's zone (a middleware)."""

    def middleware(request: http.Request) -> HttpResponseBase:
        name = ""
        if not request.path_info.startswith(_FOR_PROGRAMS):
            name = preferences.chosen(request, "time_zone") or browser_zone(request)
        with timezone.override(zoneinfo.ZoneInfo(name) if name else None):
            return get_response(request)

    return middleware


def browser_zone(request: http.Request) -> str:
    """Return the name of the zone of the browser; empty if it is unknown."""
    name = unquote(request.COOKIES.get(COOKIE, ""))
    return name if name in choices("time_zone") else ""
