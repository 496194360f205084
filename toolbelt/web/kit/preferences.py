"""The preferences of the reader's account. They are kept in the session, so that no request has to read them from the
database.
"""

from __future__ import annotations

from typing import Any, cast

from django.conf import settings
from django.contrib.auth import signals

from toolbelt.control.people import preferences
from toolbelt.web.kit import http

_KEY = "toolbelt.{}"


def chosen(request: http.Request, name: preferences.Name) -> str:
    """Return what the account of this session prefers; empty if it chose nothing."""
    if settings.SESSION_COOKIE_NAME not in request.COOKIES:
        return ""
    value = str(request.session.get(_KEY.format(name), ""))
    return value if value in preferences.choices(name) else ""


def choose(request: http.Request, name: preferences.Name, value: str) -> None:
    """Let the account of this session prefer this from now on; empty: nothing."""
    preferences.choose(cast("int", request.user.pk), name, value)
    request.session[_KEY.format(name)] = value


def connect() -> None:
    """Read the preferences of an account when it logs in."""
    signals.user_logged_in.connect(_remember, dispatch_uid="toolbelt.preferences")


def _remember(sender: object, request: Any, user: Any, **signal: Any) -> None:
    for name, value in preferences.of(user.pk).items():
        request.session[_KEY.format(name)] = value
