"""The stream of revisions from which an open page learns of changes.

A page contains the revision of its data (``chrome.counts.revision``, read before everything else). From ``web:live`` it
receives the current revision, and reloads itself when that differs. The view sends one event; over ASGI,
`toolbelt.front.event_stream` continues the response as a stream.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from django import db
from django.conf import settings
from django.contrib import auth
from django.http import HttpRequest, HttpResponse
from django.utils.deprecation import MiddlewareMixin
from django.views.decorators.http import require_GET

from toolbelt.control.reports import queries
from toolbelt.core import errors
from toolbelt.web.kit import http

PATH = "/live/"
MEDIA_TYPE = "text/event-stream"
# The header in which the view tells the ASGI application the user of the stream; the application removes it.
USER = "X-Toolbelt-User"

# The header of a page that reloads itself: it must not consume the notice that is stored for the next page.
RELOAD = "X-Toolbelt-Again"


def event(kind: str, revision: int) -> bytes:
    """Return one event. ``once``: no others follow, so the page polls; ``live``: others follow."""
    return b'event: %s\ndata: {"revision": %d}\n\n' % (kind.encode(), revision)


@require_GET
def stream(request: http.Request) -> HttpResponse:
    """Return the revision of one agent and the catalog, or of everything."""
    agent = request.GET.get("agent", "")
    if "\0" in agent:
        # PostgreSQL rejects queries with NUL.
        raise errors.NotFound("agent", agent)
    revision = queries.revision(agent)
    response = HttpResponse(event("once", revision), content_type=f"{MEDIA_TYPE}; charset=utf-8")
    # No proxy may buffer the events.
    response.headers["X-Accel-Buffering"] = "no"
    response.headers[USER] = str(request.user.pk)
    return response


class CountsMiddleware(MiddlewareMixin):
    """Read the counts and the revision of the frame before the page itself (a middleware).

    In the other order, a change between the two would be counted but not shown, and the page would not reload.
    """

    async_capable = False

    def process_view(self, request: http.Request, view: Any, args: Any, kwargs: Any) -> None:
        """Read the counts for whole pages; partial responses have no frame."""
        match = request.resolver_match
        is_page = match is not None and match.namespaces == ["web"] and request.method == "GET"
        if is_page and not request.htmx and request.user.is_authenticated:
            request.counts = queries.count()


def signed_in_user(session_key: str) -> str | None:
    """Return the primary key of the active user of a session, as text; None without a login."""
    if not session_key:
        return None
    request = HttpRequest()
    request.session = importlib.import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    user = auth.get_user(request)
    return str(user.pk) if user.is_authenticated else None


def is_still_in(session_key: str, user: str) -> bool:
    """Return whether a login is still valid: the session has not ended, and its user is the same and active."""
    try:
        return signed_in_user(session_key) == user
    finally:
        # No request ends in this thread, so nothing else closes its connections.
        db.connections.close_all()


def session_key(cookies: Mapping[str, str]) -> str:
    """Return the key of the session, from the cookies of a request; empty without one."""
    return cookies.get(settings.SESSION_COOKIE_NAME, "")
