"""Pages for a host or scheme that Toolbelt is not set up for: the page and the log say what to set."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable

import structlog
from django.conf import settings
from django.http import HttpResponse
from django.http.request import split_domain_port
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.html import format_html

from toolbelt.web.kit import http

# The shortest time in seconds between log entries of such a page, which every visitor can cause.
LOG_EVERY = 60.0
MAX_HOST_LENGTH = 255

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
_POLICY = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; frame-ancestors 'none'"
# For when no template can be rendered.
_FALLBACK_PAGE = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>Toolbelt</title>'
    "<h1>{title}</h1><p>{words}</p><pre>{setting}</pre></html>"
)
_log = structlog.get_logger(__name__)
_lock = threading.Lock()
_logged: dict[str, float] = {}


def plain_http_middleware(
    get_response: Callable[[http.Request], HttpResponseBase],
) -> Callable[[http.Request], HttpResponseBase]:
    """Respond to plain HTTP on this machine with a page, because nothing would answer after a redirect to HTTPS.

    A proxy with TLS passes on the name of the installation, never that of the loopback interface.
    """

    def middleware(request: http.Request) -> HttpResponseBase:
        is_local = split_domain_port(request.META.get("HTTP_HOST", ""))[0] in _LOOPBACK
        path = request.path.lstrip("/")
        is_exempt = any(re.search(pattern, path) for pattern in settings.SECURE_REDIRECT_EXEMPT)
        if is_local and settings.SECURE_SSL_REDIRECT and not request.is_secure() and not is_exempt:
            return plain_http(request)
        return get_response(request)

    return middleware


def disallowed_host(request: http.Request) -> HttpResponse:
    """Return a page that says how to allow this host."""
    host = request.META.get("HTTP_HOST", "")[:MAX_HOST_LENGTH]
    name = split_domain_port(host)[0]
    _log_rarely("host not allowed", host=host, setting="ALLOWED_HOSTS")
    return _page(
        request,
        title="This address is not set up",
        words="Toolbelt does not answer to this host name. If it should, add the name to ALLOWED_HOSTS in its"
        " environment or its .env file, after a comma, and restart it. Behind a proxy, check that the proxy passes on"
        " the Host header.",
        setting=f"ALLOWED_HOSTS=…,{name or 'the name'}",
    )


def plain_http(request: http.Request) -> HttpResponse:
    """Return a page that says that Toolbelt expects HTTPS, and what to set for local use."""
    _log_rarely("plain HTTP on this machine", setting="TOOLBELT_INSECURE_HTTP")
    return _page(
        request,
        title="Toolbelt expects HTTPS",
        words="This installation is set up for production, behind a proxy with TLS, and was opened over plain HTTP. To"
        " use it on this machine alone, set this in its environment or its .env file, and restart it. Passwords and"
        " tokens are then not encrypted on the way.",
        setting="TOOLBELT_INSECURE_HTTP=on",
    )


def _page(request: http.Request, **context: str) -> HttpResponse:
    try:
        response = render(request, "unconfigured.html", context, status=400)
    except Exception:  # such as static files that were not collected
        response = HttpResponse(format_html(_FALLBACK_PAGE, **context), status=400)
    # The middleware that sets these headers may not have run.
    response.headers["Content-Security-Policy"] = _POLICY
    response.headers["Cache-Control"] = "no-store"
    return response


def _log_rarely(event: str, **details: str) -> None:
    """Log the event, unless it was logged in the last minute."""
    now = time.monotonic()
    with _lock:
        if now - _logged.get(event, -LOG_EVERY) < LOG_EVERY:
            return
        _logged[event] = now
    _log.warning(event, **details)
