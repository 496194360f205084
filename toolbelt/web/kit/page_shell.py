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
from django.utils.functional import SimpleLazyObject
from django.utils.http import urlencode
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe
from django_htmx.http import HttpResponseClientRedirect, HttpResponseClientRefresh

from toolbelt import conf
from toolbelt.control import drafts
from toolbelt.control.people import rights
from toolbelt.control.reports import queries
from toolbelt.core import errors
from toolbelt.runtime import availability
from toolbelt.web.kit import (
    http,
    kept_forms,
    notices,
    preferences,
    request_ids,
    responses,
    titles,
    unconfigured,
    waiting_calls,
)

# The error responses under this prefix come from toolbelt.api.problems.
_API_PREFIX = "/api/"
# For when no template can be rendered.
_FALLBACK_PAGE = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>Toolbelt</title>'
    "<h1>{status}</h1><p>Toolbelt could not render this page.</p>"
    '<p><a href="/">Go to the overview</a></p><p>Request <code>{request_id}</code></p></html>'
)
# The response header with the reason why the database is unavailable.
UNAVAILABLE = "Toolbelt-Unavailable"
_A_DAY = 24 * 60 * 60
_log = structlog.get_logger(__name__)


def chrome_context(request: http.Request) -> dict[str, Any]:
    """Return the frame of a page (a context processor): the user, and the current ``section`` of the dashboard.

    Forms of the page redirect back to ``address``. The page shows all changes up to the revision of the ``counts``.
    ``is_answer``: the page is the response to a form, so a GET of its URL shows another page, or none. Without a login
    there is no navigation.
    """
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {"chrome": _bare_frame()}
    section = request.path.strip("/").partition("/")[0] or "home"
    if section == "new":
        # A new entry belongs to its list: /new/toolkit/ to /toolkits/.
        section = request.path.split("/")[2] + "s"
    counts = getattr(request, "counts", None) or queries.count()
    chrome = _bare_frame() | {
        "user": user.get_username(),
        "density": preferences.chosen(request, "density"),
        "section": section,
        "address": responses.current_address(request),
        "counts": counts,
        # Read only by whole pages, which have a menu.
        "to_decide": SimpleLazyObject(lambda: _to_decide(request, counts)),
        # Read only by the pages of the review.
        "drafts": SimpleLazyObject(lambda: {"open": drafts.count_open(_drafts_of(user))}),
        # Read only by pages that name agents.
        "agent_titles": SimpleLazyObject(lambda: titles.of_agents(request)),
        "may_see_calls": rights.may_read(user, "call_record"),
        "may_see_drafts": rights.may_read(user, "draft"),
        "may_propose": rights.may_propose(user),
        "may_see_tokens": rights.may_read(user, "api_token"),
        "command": conf.COMMAND,
        "is_answer": request.method not in ("GET", "HEAD"),
    }
    return {"chrome": chrome}


def _drafts_of(user: Any) -> str:
    """Return the author whose drafts the user sees: everyone's (empty), or their own."""
    return "" if rights.may_read(user, "draft") else user.get_username()


def _to_decide(request: http.Request, counts: queries.Counts) -> dict[str, int]:
    """Return how many calls wait for the user, and how many of these and of tools to review there are in total."""
    calls = waiting_calls.count(request)
    return {"calls": calls, "total": calls + counts.to_review}


def _bare_frame() -> dict[str, Any]:
    """Return a frame without navigation: the environment is the badge beside the logo, the provider the one with which
    people log in, if there is one.
    """
    return {
        "user": "",
        "density": "",
        "request_id": request_ids.current(),
        "environment": conf.ENVIRONMENT_NAME,
        "environment_color": conf.ENVIRONMENT_COLOR,
        "provider": conf.SIGN_IN_NAME if conf.SIGN_IN_ISSUER else "",
        "has_passwords": conf.LOCAL_LOGIN == "everyone",
    }


@decorators.login_not_required
@require_safe
@cache_control(public=True, max_age=_A_DAY)
def icon(request: http.Request) -> HttpResponse:
    """Redirect to the icon. Browsers request this URL for pages without an icon: the admin, metrics, plain text."""
    return HttpResponseRedirect(static("favicon.svg"))


def htmx_leaves(
    get_response: Callable[[http.Request], HttpResponse],
) -> Callable[[http.Request], HttpResponseBase]:
    """Set the headers of responses to htmx (a middleware).

    If the session has expired, the whole page redirects to the login, and not only a part of it. Browsers must not
    store responses: the back button would show a part as if it were the page, and outdated states.
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
            current_url = urlsplit(request.htmx.current_url or "/")
        except ValueError:
            current_url = urlsplit("/")
        next_path = f"{current_url.path}?{current_url.query}" if current_url.query else current_url.path
        return HttpResponseClientRedirect(f"{login}?{urlencode({'next': next_path})}")

    return middleware


def csrf_failure(request: http.Request, reason: str = "") -> HttpResponse:
    """Reject a form without a valid token with an error page; htmx reloads its page, which then shows a notice."""
    if (asked := kept_forms.ask_after_login_elsewhere(request)) is not None:
        return asked
    if not request.htmx:
        return _framed(request, "403_csrf.html", 403)
    if request.user.is_authenticated:
        text = "Nothing was changed, because the page was older than your login. The page is now up to date: try again."
        responses.keep_notice(request, notices.Notice(text=text, tone="refused"))
    return HttpResponseClientRefresh()


def bad_request(request: http.Request, exception: Exception) -> HttpResponse:
    """Return the error page for an invalid or too large request."""
    if isinstance(exception, DisallowedHost) and not request.path_info.startswith(_API_PREFIX):
        return unconfigured.disallowed_host(request)
    if isinstance(exception, RequestDataTooBig | TooManyFieldsSent):
        return _framed(request, "413.html", 413)
    return _framed(request, "400.html", 400)


def forbidden(request: http.Request, exception: Exception) -> HttpResponse:
    """Return the error page for missing permissions."""
    return _framed(request, "403.html", 403, why=str(exception))


def not_found(request: http.Request, exception: Exception) -> HttpResponse:
    """Return the error page for a URL that does not exist."""
    return _framed(request, "404.html", 404)


def busy(request: http.Request, retry_after: int) -> HttpResponse:
    """Return the error page of a busy server, with the seconds to wait before a retry."""
    response = _framed(request, "too_busy.html", 503)
    response.headers["Retry-After"] = str(retry_after)
    return response


def server_error(request: http.Request) -> HttpResponse:
    """Return the error page for a failure of Toolbelt or the database, with the id of the request."""
    unavailable: errors.Unavailable | None = getattr(request, "unavailable", None)
    if unavailable is not None:
        return unavailable_page(request, unavailable)
    if request.path_info.startswith(_API_PREFIX):
        return HttpResponseServerError()
    return _unframed("500.html", 500)


def unavailable_page(request: http.Request, unavailable: errors.Unavailable) -> HttpResponse:
    """Return why the database is unavailable, and when to try again, without a query.

    A script of a page gets only the sentence; `toolbelt.api.problems` turns it into a problem for the API.
    """
    headers = {"Retry-After": str(unavailable.retry_after), UNAVAILABLE: unavailable.code}
    if request.path_info.startswith(_API_PREFIX):
        response = HttpResponse(status=unavailable.status, headers=headers)
        response.unavailable = unavailable  # type: ignore[attr-defined]
        return response
    if request.htmx:
        return HttpResponse(str(unavailable), "text/plain", unavailable.status, headers=headers)
    response = _unframed("503.html", unavailable.status, unavailable=unavailable)
    for name, value in headers.items():
        response.headers[name] = value
    return response


def _framed(request: http.Request, template: str, status: int, **context: str) -> HttpResponse:
    """Return an error page in the frame of the other pages; unframed if the frame cannot be rendered."""
    if request.path_info.startswith(_API_PREFIX):
        # toolbelt.api.problems fills the body.
        return HttpResponse(status=status)
    try:
        return render(request, template, context, status=status)
    except Exception as error:
        if (unavailable := availability.classify(error)) is not None:
            request.user = AnonymousUser()
            return unavailable_page(request, unavailable)
        _log.exception("error_page_failed", template=template)
    finally:
        _close_connections()
    return _unframed(template, status)


def _unframed(template: str, status: int, **context: object) -> HttpResponse:
    """Return an error page that depends on nothing that may be broken."""
    request_id = request_ids.current()
    try:
        context = {"chrome": _bare_frame(), "request_id": request_id, **context}
        page = loader.get_template(template).render(context)
    except Exception:  # such as missing templates or static files that were not collected
        page = _FALLBACK_PAGE.format(status=status, request_id=html.escape(request_id))
    return HttpResponse(page, status=status)


def _close_connections() -> None:
    """Close the database connections: under ASGI, Django renders error pages in a thread whose connections nothing else
    closes.
    """
    for connection in db.connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close()
