"""What surrounds every page: the navigation, the error pages, and the headers of answers to htmx."""

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
from toolbelt.web.kit import http, notices, pieces, request_ids, responses, unconfigured

# toolbelt.api.problems answers these.
_FOR_PROGRAMS = "/api/"
# Where not even a template can be had.
_BARE = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>Toolbelt</title>'
    "<h1>{status}</h1><p>Toolbelt could not render this page.</p>"
    '<p><a href="/">Go to the overview</a></p><p>Request <code>{request_id}</code></p></html>'
)
# Says in a header why the database cannot be used.
UNAVAILABLE = "Toolbelt-Unavailable"
_A_DAY = 24 * 60 * 60
_log = structlog.get_logger(__name__)


def shown(request: http.Request) -> dict[str, Any]:
    """Return the frame of a page (a context processor): the user, and at which part of the dashboard this is.

    ``address`` is where the page's forms lead back to, and the page shows all that was written up to ``revision``.
    ``is_answer``: the page answers a form, so another page, or none, is at its address. A visitor who has not logged in
    sees no navigation.
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
        here=part,
        address=responses.here(request),
        agents=counts.agents,
        revision=counts.revision,
        to_look_at=counts.waiting,
        may_administer=user.is_staff,
        may_see_calls=rights.may_read(user, "call_record"),
        may_see_tokens=rights.may_read(user, "api_token"),
        request_id=request_ids.current(),
        command=conf.COMMAND,
        is_answer=request.method not in ("GET", "HEAD"),
    )
    return {"chrome": chrome}


def _bare_frame() -> pieces.View:
    return pieces.View(user="", request_id=request_ids.current())


@decorators.login_not_required
@require_safe
@cache_control(public=True, max_age=_A_DAY)
def icon(request: http.Request) -> HttpResponse:
    """Lead to the icon. Browsers ask for it here wherever a page names none: the admin, the metrics, a plain text."""
    return HttpResponseRedirect(static("favicon.svg"))


def htmx_leaves(
    get_response: Callable[[http.Request], HttpResponse],
) -> Callable[[http.Request], HttpResponseBase]:
    """Send answers off so that none of them turns up where it does not belong.

    A session that is over leads the whole page to the login, instead of pasting the login into a part of it. And no
    browser keeps an answer: going back would show a part as if it were the page, and states that are no longer so.
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
        back = urlsplit(request.htmx.current_url or "/")
        came_from = f"{back.path}?{back.query}" if back.query else back.path
        return HttpResponseClientRedirect(f"{login}?{urlencode({'next': came_from})}")

    return middleware


def csrf_failure(request: http.Request, reason: str = "") -> HttpResponse:
    """Answer a form whose token is not good: a browser gets told; htmx loads the page anew, and that one tells."""
    if not request.htmx:
        return _told(request, "403_csrf.html", 403)
    if request.user.is_authenticated:
        text = "Nothing was changed, because the page was older than your login. The page is now up to date: try again."
        responses.keep(request, notices.Notice(text=text, tone="refused"))
    return HttpResponseClientRefresh()


def bad_request(request: http.Request, exception: Exception) -> HttpResponse:
    """Return that the request makes no sense, or is larger than any that is taken, and which one it was."""
    if isinstance(exception, DisallowedHost) and not request.path_info.startswith(_FOR_PROGRAMS):
        return unconfigured.disallowed_host(request)
    if isinstance(exception, RequestDataTooBig | TooManyFieldsSent):
        return _told(request, "413.html", 413)
    return _told(request, "400.html", 400)


def forbidden(request: http.Request, exception: Exception) -> HttpResponse:
    """Return that this login may not."""
    return _told(request, "403.html", 403, why=str(exception))


def not_found(request: http.Request, exception: Exception) -> HttpResponse:
    """Return that there is nothing here."""
    return _told(request, "404.html", 404)


def busy(request: http.Request, retry_after: int) -> HttpResponse:
    """Answer that the server has too much to do, and in how many seconds to try again."""
    response = _told(request, "too_busy.html", 503)
    response.headers["Retry-After"] = str(retry_after)
    return response


def server_error(request: http.Request) -> HttpResponse:
    """Answer that the fault is ours, and which request it was. Asks for nothing that may be what is broken.

    A fault of the database is told as what it is.
    """
    unavailable: errors.Unavailable | None = getattr(request, "unavailable", None)
    if unavailable is not None:
        return unavailable_page(request, unavailable)
    if request.path_info.startswith(_FOR_PROGRAMS):
        return HttpResponseServerError()
    try:
        page = loader.get_template("500.html").render({"request_id": request_ids.current()})
    except Exception:  # whatever it is that is not even there: the templates, the collected files
        page = _BARE.format(status=500, request_id=html.escape(request_ids.current()))
    return HttpResponseServerError(page)


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
    about = {"unavailable": unavailable, "request_id": request_ids.current()}
    try:
        page = loader.get_template("503.html").render(about)
    except Exception:  # as in server_error
        page = _BARE.format(status=unavailable.status, request_id=html.escape(request_ids.current()))
    return HttpResponse(page, status=unavailable.status, headers=headers)


def _told(request: http.Request, template: str, status: int, **said: str) -> HttpResponse:
    """Tell in the frame of the other pages; alone, where what the frame asks for does not answer."""
    if request.path_info.startswith(_FOR_PROGRAMS):
        # No page is made for those who cannot read one: what stands around the API says it as a problem.
        return HttpResponse(status=status)
    try:
        return render(request, template, said, status=status)
    except Exception as error:
        if (unavailable := availability.classify(error)) is not None:
            request.user = AnonymousUser()
            return unavailable_page(request, unavailable)
        _log.exception("error_page_failed", template=template)
    finally:
        _let_go()
    try:
        alone = {"chrome": _bare_frame()}
        page = loader.get_template(template).render(alone)
    except Exception:
        page = _BARE.format(status=status, request_id=html.escape(request_ids.current()))
    return HttpResponse(page, status=status)


def _let_go() -> None:
    """Let go of the database: under ASGI, Django makes these pages in a thread that nobody tells of the request's end.

    Each such thread would keep a connection, until none is left for anyone.
    """
    for connection in db.connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close()
