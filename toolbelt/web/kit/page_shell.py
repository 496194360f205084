"""The frame of every page: the navigation, the error pages, and the headers of responses to htmx."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import structlog
from django import db
from django.conf import settings
from django.contrib.auth import decorators
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import DisallowedHost, RequestDataTooBig, TooManyFieldsSent
from django.http import HttpResponse, HttpResponseRedirect, HttpResponseServerError
from django.http.response import HttpResponseBase
from django.shortcuts import render, resolve_url
from django.template import loader
from django.templatetags.static import static
from django.utils import cache
from django.utils.http import urlencode
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe
from django_htmx.http import HttpResponseClientRedirect, HttpResponseClientRefresh

from toolbelt import conf
from toolbelt.control.people import rights
from toolbelt.control.reports import queries
from toolbelt.core import errors
from toolbelt.runtime import availability
from toolbelt.web.kit import http, notices, pieces, preferences, request_ids, responses, unconfigured

# toolbelt.api.problems answers these.
_FOR_PROGRAMS = "/api/"
# If not even a template can be rendered.
_BARE = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>Toolbelt</title>'
    "<h1>{status}</h1><p>Toolbelt could not render this page.</p>"
    '<p><a href="/">Go to the overview</a></p><p>Request <code>{request_id}</code></p></html>'
)
# Says in a header why the database cannot be used.
UNAVAILABLE = "Toolbelt-Unavailable"
_A_DAY = 24 * 60 * 60
# The slots of a frame whose chunk of memory has room for everything that it calls: see `_in_one_chunk`.
_SLOTS = 16_384
_log = structlog.get_logger(__name__)


def chrome_context(request: http.Request) -> dict[str, Any]:
    """Return the frame of a page (a context processor): the user, and at which part of the dashboard this is.

    ``address`` is where the page's forms lead back to, and the page shows all that was written up to the revision of
    the ``counts``. ``is_answer``: the page answers a form, so another page, or none, is at its address. A visitor who
    has not logged in sees no navigation.
    """
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {"chrome": _bare_frame()}
    part = request.path.strip("/").partition("/")[0] or "home"
    if part == "new":
        # A new entry belongs to its list: /new/toolkit/ to /toolkits/.
        part = request.path.split("/")[2] + "s"
    counts = getattr(request, "counts", None) or queries.count()
    chrome = pieces.View(
        user=user.get_username(),
        density=preferences.chosen(request, "density"),
        here=part,
        address=responses.current_address(request),
        counts=counts,
        may_see_calls=rights.may_read(user, "call_record"),
        may_see_tokens=rights.may_read(user, "api_token"),
        request_id=request_ids.current(),
        command=conf.COMMAND,
        is_answer=request.method not in ("GET", "HEAD"),
        **_environment(),
    )
    return {"chrome": chrome}


def _bare_frame() -> pieces.View:
    return pieces.View(user="", density="", request_id=request_ids.current(), **_environment())


def _environment() -> dict[str, str]:
    """Return the name and the color of the badge beside the logo."""
    return {"environment": conf.ENVIRONMENT_NAME, "environment_color": conf.ENVIRONMENT_COLOR}


@decorators.login_not_required
@require_safe
@cache_control(public=True, max_age=_A_DAY)
def icon(request: http.Request) -> HttpResponse:
    """Redirect to the icon. Browsers ask here if a page names none: the admin, the metrics, a plain text."""
    return HttpResponseRedirect(static("favicon.svg"))


def htmx_leaves(
    get_response: Callable[[http.Request], HttpResponse],
) -> Callable[[http.Request], HttpResponseBase]:
    """Set the headers of responses to htmx (a middleware).

    If the session has expired, the whole page goes to the login, instead of a part of it. No browser stores a response:
    going back would show a part as if it were the page, and states that have changed.
    """

    def middleware(request: http.Request) -> HttpResponseBase:
        response = get_response(request)
        if not response.has_header("Cache-Control"):
            cache.patch_cache_control(response, private=True, no_store=True)
        if not request.htmx or response.status_code != 302:
            return response
        login = resolve_url(settings.LOGIN_URL)
        if urlsplit(response.headers["Location"]).path != login:
            return response
        try:
            back = urlsplit(request.htmx.current_url or "/")
        except ValueError:
            back = urlsplit("/")
        came_from = f"{back.path}?{back.query}" if back.query else back.path
        return HttpResponseClientRedirect(f"{login}?{urlencode({'next': came_from})}")

    _in_one_chunk(middleware)
    return middleware


def _in_one_chunk(function: Any) -> None:
    """Let the frames of everything that a function calls share one chunk of memory.

    CPython keeps frames in chunks of 16 KB, and frees a chunk when it is empty. A loop whose calls begin a new chunk
    allocates and frees memory each time, which can double the time of a page (docs/decisions/0035).
    """
    function.__code__ = function.__code__.replace(co_stacksize=_SLOTS)


def csrf_failure(request: http.Request, reason: str = "") -> HttpResponse:
    """Answer a form without a valid token: with a page; htmx reloads its page, which then shows a notice."""
    if not request.htmx:
        return _framed(request, "403_csrf.html", 403)
    if request.user.is_authenticated:
        text = "Nothing was changed, because the page was older than your login. The page is now up to date: try again."
        responses.keep_notice(request, notices.Notice(text=text, tone="refused"))
    return HttpResponseClientRefresh()


def bad_request(request: http.Request, exception: Exception) -> HttpResponse:
    """Answer that the request is invalid, or too large."""
    if isinstance(exception, DisallowedHost) and not request.path_info.startswith(_FOR_PROGRAMS):
        return unconfigured.disallowed_host(request)
    if isinstance(exception, RequestDataTooBig | TooManyFieldsSent):
        return _framed(request, "413.html", 413)
    return _framed(request, "400.html", 400)


def forbidden(request: http.Request, exception: Exception) -> HttpResponse:
    """Answer that the user does not have permission."""
    return _framed(request, "403.html", 403, why=str(exception))


def not_found(request: http.Request, exception: Exception) -> HttpResponse:
    """Answer that there is no such page."""
    return _framed(request, "404.html", 404)


def busy(request: http.Request, retry_after: int) -> HttpResponse:
    """Answer that the server has too much to do, and in how many seconds to try again."""
    response = _framed(request, "too_busy.html", 503)
    response.headers["Retry-After"] = str(retry_after)
    return response


def server_error(request: http.Request) -> HttpResponse:
    """Answer that something is wrong on our side, or with the database, and which request it was."""
    unavailable: errors.Unavailable | None = getattr(request, "unavailable", None)
    if unavailable is not None:
        return unavailable_page(request, unavailable)
    if request.path_info.startswith(_FOR_PROGRAMS):
        return HttpResponseServerError()
    return _unframed("500.html", 500)


def unavailable_page(request: http.Request, unavailable: errors.Unavailable) -> HttpResponse:
    """Answer why the database cannot be used now, and when to try again, without asking it for anything.

    A script of a page gets the sentence alone; `toolbelt.api.problems` makes a problem of it for the API.
    """
    headers = {"Retry-After": str(unavailable.retry_after), UNAVAILABLE: unavailable.code}
    if request.path_info.startswith(_FOR_PROGRAMS):
        answer = HttpResponse(status=unavailable.status, headers=headers)
        answer.unavailable = unavailable  # type: ignore[attr-defined]
        return answer
    if request.htmx:
        return HttpResponse(str(unavailable), "text/plain", unavailable.status, headers=headers)
    response = _unframed("503.html", unavailable.status, unavailable=unavailable)
    for name, value in headers.items():
        response.headers[name] = value
    return response


def _framed(request: http.Request, template: str, status: int, **shown: str) -> HttpResponse:
    """Return an error page in the frame of the other pages; unframed if the frame cannot be rendered."""
    if request.path_info.startswith(_FOR_PROGRAMS):
        # toolbelt.api.problems fills the body.
        return HttpResponse(status=status)
    try:
        return render(request, template, shown, status=status)
    except Exception as error:
        if (unavailable := availability.classify(error)) is not None:
            request.user = AnonymousUser()
            return unavailable_page(request, unavailable)
        _log.exception("error_page_failed", template=template)
    finally:
        _close_connections()
    return _unframed(template, status)


def _unframed(template: str, status: int, **shown: object) -> HttpResponse:
    """Return an error page that asks for nothing that may be broken."""
    request_id = request_ids.current()
    try:
        shown = {"chrome": _bare_frame(), "request_id": request_id, **shown}
        page = loader.get_template(template).render(shown)
    except Exception:  # whatever is missing: the templates, the collected files
        page = _BARE.format(status=status, request_id=html.escape(request_id))
    return HttpResponse(page, status=status)


def _close_connections() -> None:
    """Close the database connections: under ASGI, Django renders error pages in a thread whose connections nothing else
    closes.
    """
    for connection in db.connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close()
