"""Forms that are sent after the login has expired: kept by the login page, and sent again after a confirmation.

The login page carries what was entered in a hidden field, so that nothing is stored outside the browser. The field is
signed with the address of the form and the person who was logged in before, whom a cookie names. After the login, a
page shows what was entered, and one button sends it with a new CSRF token. Another person gets a notice instead.

Secrets (by their names or their form) and files are not kept, nor what is longer than :data:`MAX_LENGTH`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.core import signing
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import Resolver404, resolve, reverse
from django_htmx.http import reselect, reswap, retarget

from toolbelt.core import secret_texts
from toolbelt.web.kit import http

# The name of the hidden field, and of the cookie that names the person who was logged in last.
FIELD, COOKIE = "kept", "toolbelt-person"
# The most characters of the hidden field: a request without a login is limited (front.request_limits).
MAX_LENGTH = 80_000
# How long a login page can be sent with what it keeps, in seconds.
MAX_AGE = 24 * 3600
MAX_SHOWN_LENGTH = 2000
_SALT, _COOKIE_SALT = "toolbelt.kept_forms", "toolbelt.person"
_COOKIE_AGE = 365 * 24 * 3600
# Forms that are not sent again: they are about the login itself.
_EXCLUDED = frozenset(
    {
        "web:login",
        "web:second_factor",
        "web:passkey",
        "web:password_link",
        "web:logout",
        "web:change_password",
        "web:confirm_account",
        "web:add_app",
        "web:add_passkey",
        "web:recovery_codes",
        "web:rename_passkey",
        "web:remove_factor",
        "admin:login",
        "admin:logout",
        "admin:password_change",
    }
)
# Fields that carry the state of the page, and not what a person entered.
_OF_PAGE = frozenset(
    {"was", "seen", "next", "confirm", "message", "tools", "sections", "cells", "place", "control"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptForm:
    """What was entered in a form: its fields, and the names of those that are not kept.

    ``person`` is the primary key of the user who was logged in before, as text; empty if that is not known.
    """

    path: str
    person: str
    fields: tuple[tuple[str, tuple[str, ...]], ...]
    left_out: tuple[str, ...]

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield each field with each of its values, as the form sends them."""
        yield from ((name, value) for name, values in self.fields for value in values)

    def shown(self) -> list[tuple[str, str]]:
        """Return what a person entered, to read, without the state of the page."""
        return [
            (
                name.replace("_", " ").capitalize(),
                ", ".join(filter(None, values))[:MAX_SHOWN_LENGTH].strip(),
            )
            for name, values in self.fields
            if name not in _OF_PAGE and any(values)
        ]


class Middleware(LoginRequiredMiddleware):
    """Django's middleware, which requires a login; a form that is sent without one gets a login page that keeps it."""

    def handle_no_permission(  # type: ignore[override]
        self, request: Any, view_func: Callable[..., Any]
    ) -> HttpResponseBase:
        """Return the login page with the form, or redirect to it if there is nothing to keep."""
        if _is_preview(request):
            return HttpResponse(status=204)
        kept = of_request(request)
        if kept is None:
            return super().handle_no_permission(request, view_func)
        text = signing.dumps([kept.path, kept.person, kept.fields, kept.left_out], salt=_SALT, compress=True)
        is_too_long = len(text) > MAX_LENGTH
        context = {
            "next": _opened_page(request),
            "kept": "" if is_too_long else text,
            "is_too_long": is_too_long,
            "is_expired": True,
        }
        return as_page(request, render(request, "login.html", context, status=_status(request)))

    def process_response(self, request: http.Request, response: HttpResponseBase) -> HttpResponseBase:
        """Remember who is logged in, to recognize them after the login has expired."""
        user = getattr(request, "user", None)
        if (
            user is None
            or not response.headers.get("Content-Type", "").startswith("text/html")
            or not user.is_authenticated
        ):
            return response
        person, is_alone = _read_cookie(request)
        if person != str(user.pk):
            response.set_cookie(
                COOKIE,
                signing.dumps([str(user.pk), is_alone and not person], salt=_COOKIE_SALT),
                max_age=_COOKIE_AGE,
                path=settings.SESSION_COOKIE_PATH,
                secure=settings.SESSION_COOKIE_SECURE,
                httponly=True,
                samesite="Lax",
            )
        return response


def of_request(request: http.Request) -> KeptForm | None:
    """Return the form that a request sends; None if it sends none, or none that may be sent again."""
    if request.method != "POST" or not _may_be_sent_again(request.path_info):
        return None
    names = [name for name in request.POST if name != "csrfmiddlewaretoken"]
    secret = [name for name in names if _may_hold_secret(name, request.POST.getlist(name))]
    fields = tuple((name, tuple(request.POST.getlist(name))) for name in names if name not in secret)
    if not fields:
        return None
    left_out = (*secret, *request.FILES)
    return KeptForm(
        path=request.get_full_path(), person=_read_cookie(request)[0], fields=fields, left_out=left_out
    )


def read(text: str) -> KeptForm | None:
    """Return the form that a login page kept; None if there is none, or if it was not kept here, or too long ago."""
    try:
        path, person, fields, left_out = signing.loads(text, salt=_SALT, max_age=MAX_AGE)
    except (signing.BadSignature, ValueError):
        return None
    if not _may_be_sent_again(urlsplit(path).path):
        return None
    return KeptForm(
        path=path,
        person=person,
        fields=tuple((name, tuple(values)) for name, values in fields),
        left_out=tuple(left_out),
    )


def ask(request: http.Request, kept: KeptForm, back: str) -> HttpResponse:
    """Ask whether to send a form again; ``back`` is the page to return to if not."""
    context = {"kept": kept, "back": back}
    return as_page(request, render(request, "login_continue.html", context))


def ask_after_login_elsewhere(request: http.Request) -> HttpResponse | None:
    """Ask whether to send a form whose page is older than the login, which was renewed on another page.

    None if the form may come from another site or another person.
    """
    is_own = request.headers.get("Sec-Fetch-Site") == "same-origin"
    # A login changes the cookie; without one, the page is only older than the browser's cookies.
    has_cookie = settings.CSRF_COOKIE_NAME in request.COOKIES
    if not is_own or not has_cookie or not request.user.is_authenticated:
        return None
    if request.path_info == reverse("web:login"):
        kept = read(request.POST.get(FIELD, ""))
        return (
            ask(request, kept, reverse("web:home")) if kept and kept.person == str(request.user.pk) else None
        )
    if _is_preview(request):
        return HttpResponse(status=204)
    kept = of_request(request)
    if kept is None or _read_cookie(request) != (str(request.user.pk), True):
        return None
    return ask(request, kept, _opened_page(request))


def as_page(request: http.Request, response: HttpResponse) -> HttpResponse:
    """Return a response that replaces the content of the page, also for htmx."""
    return (
        reselect(reswap(retarget(response, "#main"), "innerHTML"), "#main > *") if request.htmx else response
    )


def _is_preview(request: http.Request) -> bool:
    """Return whether a page sent this during typing: its login page would replace that of a form that was sent."""
    return bool(request.htmx) and request.POST.get("act") == "try"


def _may_hold_secret(name: str, values: list[str]) -> bool:
    """Return whether a field may hold a secret: by its name, or by a line such as ``X-Api-Key: …`` in it."""
    lines = [line for value in values for line in value.splitlines()]
    return secret_texts.is_name(name) or any(
        secret_texts.is_secret(key.strip(), value.strip()) or secret_texts.has_known_form(line)
        for line in lines
        for key, _, value in [line.partition(":")]
    )


def _status(request: http.Request) -> int:
    # htmx shows no response with an error.
    return 200 if request.htmx else 403


def _opened_page(request: http.Request) -> str:
    """Return the path of the page that sent the request, if it is one of this site; otherwise the overview."""
    try:
        url = urlsplit(request.htmx.current_url or request.headers.get("Referer", ""))
    except ValueError:
        return "/"
    if url.netloc != request.get_host() or not url.path.startswith("/") or url.path.startswith("//"):
        return "/"
    return f"{url.path}?{url.query}" if url.query else url.path


def _may_be_sent_again(path: str) -> bool:
    """Return whether this is the address of a form of the dashboard or the admin that is not about the login."""
    try:
        match = resolve(path)
    except Resolver404:
        return False
    return match.app_name in ("web", "admin") and match.view_name not in _EXCLUDED


def _read_cookie(request: http.Request) -> tuple[str, bool]:
    """Return who was logged in last (empty: not known), and whether no other person was in this browser."""
    try:
        person, is_alone = signing.loads(request.COOKIES.get(COOKIE, ""), salt=_COOKIE_SALT)
    except (signing.BadSignature, ValueError):
        return "", True
    return str(person), bool(is_alone)
