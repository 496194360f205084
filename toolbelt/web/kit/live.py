"""How does an open page learn that something changed? From a stream that says which revision it is by now.

The page has the revision that it was made of (``chrome.revision``, read before all else). At ``web:live`` it is told
the present one, and asks for itself anew where that is another. The view answers once, and whoever serves it over ASGI
goes on from there (`toolbelt.front.event_stream`): what is said twice of a stream is said here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from django import db
from django.conf import settings
from django.contrib import auth
from django.contrib.sessions.backends.base import SessionBase
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.module_loading import import_string

from toolbelt.control.reports import queries
from toolbelt.web.kit import http

PATH = "/live/"
MEDIA_TYPE = "text/event-stream"
# Whose stream it is: said by the view, and for nobody outside.
USER = "X-Toolbelt-User"

# What a page sends that asks for itself anew: what was kept for the next page is not for this one.
AGAIN = "X-Toolbelt-Again"


def event(kind: str, revision: int) -> bytes:
    """Write one event. ``once``: it is the only one, ask again in a while; ``live``: others follow."""
    return b'event: %s\ndata: {"revision": %d}\n\n' % (kind.encode(), revision)


def is_again(request: HttpRequest) -> bool:
    """Return whether this is a page that asks for itself anew."""
    return AGAIN in request.headers


class Counted:
    """Count what stands around a page before the page is made, so that it is never older than it says (a middleware).

    In the other order, what is committed in between would be counted and not be shown, and nobody would notice.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self._get_response(request)

    def process_view(self, request: http.Request, view: Any, args: Any, kwargs: Any) -> None:
        """Count for whole pages; what leaves a part of one has its own frame."""
        match = request.resolver_match
        is_page = match is not None and match.namespaces == ["web"] and request.method == "GET"
        if is_page and not request.htmx and request.user.is_authenticated:
            request.counts = queries.count()


def signed_in_user(session_key: str) -> str | None:
    """Return the primary key of the active user whose session this is, as text; None if nobody is logged in."""
    if not session_key:
        return None
    request = HttpRequest()
    request.session = _store()(session_key)
    found = auth.get_user(request)
    return str(found.pk) if found.is_authenticated else None


def is_still_in(session_key: str, user: str) -> bool:
    """Return whether a login still holds: the session is not over, and it is the same user, who is active."""
    try:
        return signed_in_user(session_key) == user
    finally:
        # The thread is one of many that nobody tells of the end of a request.
        db.connections.close_all()


def session_key(cookies: Mapping[str, str]) -> str:
    """Return the key of the session, from the cookies of a request; empty without one."""
    return cookies.get(settings.SESSION_COOKIE_NAME, "")


@functools.cache
def _store() -> type[SessionBase]:
    store: type[SessionBase] = import_string(f"{settings.SESSION_ENGINE}.SessionStore")
    return store
