"""Responses to changes: parts of the page for htmx, a redirect for a browser, or the form again, or a confirmation.

:class:`ErrorMiddleware` handles the errors of the domain in the same way.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar, cast

from django.contrib.auth.decorators import user_passes_test
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.deprecation import MiddlewareMixin
from django.utils.http import url_has_allowed_host_and_scheme
from django_htmx.http import HttpResponseClientRedirect, HttpResponseClientRefresh, replace_url, reswap

from toolbelt.control import writing
from toolbelt.control.people import rights
from toolbelt.control.reports import queries
from toolbelt.core import effects, errors
from toolbelt.web.kit import forms, http, live, model_panel, notices, pieces, texts, words

_NOTICE_KEY = "toolbelt.notice"
_View = TypeVar("_View", bound=Callable[..., HttpResponseBase])


class ErrorMiddleware(MiddlewareMixin):
    """Handle the errors of the domain that views raise: with 404, 409 or 422, or with a confirmation."""

    async_capable = False

    def process_exception(self, request: http.Request, error: Exception) -> HttpResponse | None:
        """Respond as the view declared. Raise Http404 if an entry in the URL does not exist."""
        match = request.resolver_match
        if not isinstance(error, errors.ToolbeltError) or match is None or match.namespaces != ["web"]:
            return None
        try:
            return self._answer(request, error, match.kwargs)
        except errors.NotFound as missing:
            raise Http404(str(missing)) from missing

    @staticmethod
    def _answer(
        request: http.Request, error: errors.ToolbeltError, address: Mapping[str, Any]
    ) -> HttpResponse | None:
        answers: http.Answers | None = getattr(request, "answers", None)
        if isinstance(error, errors.NotFound) and (answers is None or error.name in address.values()):
            raise error
        if answers is None or isinstance(error, errors.Unavailable):
            return None
        if isinstance(error, errors.ConfirmationRequired):
            return (
                answers.ask(error)
                if answers.ask
                else ask_confirmation(request, build_confirmation(request, error))
            )
        status = 409 if isinstance(error, errors.Stale | errors.NotFound) else 422
        return answers.form(error, status) if answers.form is not None else refuse(request, error, status)


def declare(request: http.Request, home: str, **answers: Any) -> None:
    """Declare the responses to this request, with the fields of :class:`http.Answers`."""
    request.answers = http.Answers(home=home, **answers)


def respond(
    request: http.Request, notice: notices.Notice, change: effects.Effect | None = None, status: int = 200
) -> HttpResponse:
    """Respond as the view declared: with parts of the page, or with a redirect to a page that shows the notice.

    If htmx requested a confirmation, its page keeps its state and selection, and only receives the notice.
    The status is 200, because a browser would log anything else as an error.
    """
    answers = request.answers
    if request.htmx and answers.parts is not None:
        return answers.parts(notice, change, status)
    if request.htmx and request.method == "GET":
        page = pieces.Page()
        page.notice = notice
        notice_parts = render(request, "_notice_parts.html", {"page": page})
        return replace_url(reswap(notice_parts, "none"), False)
    keep_notice(request, notice, change)
    return see_other(request, back_url(request, answers.home))


def respond_changed(
    request: http.Request, change: writing.Change, result: str, *, unchanged: str = "", **notice: Any
) -> HttpResponse:
    """Respond with a notice of the ``result`` that offers to undo the change.

    If nothing changed, the notice says so: with ``unchanged``, or that the ``result`` already holds.
    """
    if change.is_nothing:
        return respond(request, notices.Notice(text=f"No changes: {unchanged or f'{result} already'}."))
    return respond(request, notices.Notice(text=f"{result}.", undo=change.entry, **notice), change.effect)


def swap_in(request: http.Request, template: str, page: Callable[[], pieces.Page]) -> http.Parts:
    """Return a function that renders a template for htmx, with the ``page`` after the change."""

    def parts(notice: notices.Notice, change: effects.Effect | None, status: int) -> HttpResponse:
        view = page()
        view.notice = notice
        return render(request, template, {"page": view}, status=status)

    return parts


def refuse(request: http.Request, error: errors.ToolbeltError, status: int) -> HttpResponse:
    """Respond with a notice that says what was not done, and why."""
    mark = ":" if isinstance(error, forms.FormError) else "."
    text = f"{request.answers.refusal}{mark} {error}"
    return respond(request, notices.Notice(text=text, tone="refused"), status=status)


def build_confirmation(request: http.Request, error: errors.ConfirmationRequired) -> notices.Confirmation:
    """Return the confirmation that the error requires, with the title and verb that the view declared."""
    answers, differences = request.answers, error.differences
    tools = tuple(model_panel.tool_changes(differences["added"], differences["removed"]))
    notes = (
        *model_panel.notes(differences["policy"]),
        *model_panel.on_request(
            differences.get("on_request_added", ()), differences.get("on_request_removed", ())
        ),
        *model_panel.consequences(
            differences.get("breaks", ()),
            effects.Conversations(**counts) if (counts := differences.get("conversations")) else None,
        ),
    )
    return notices.Confirmation(
        title=answers.title,
        reasons=tuple(texts.visible(words.with_few_names(reason)) for reason in error.reasons),
        effect=pieces.Effect(
            tools=differences["tools"],
            tokens=differences["tokens"],
            notes=notes or (() if tools else ("No change for the model.",)),
        ),
        differences=tools,
        action=request.path,
        fields=(
            *((name, value) for name in answers.fields for value in request.POST.getlist(name)),
            ("confirm", "yes"),
        ),
        confirm_word=answers.verb,
        back=back_url(request, answers.home),
        dangerous=bool(differences["added"]),
    )


def ask(
    request: http.Request,
    title: str,
    verb: str,
    reasons: Iterable[str],
    fields: Iterable[tuple[str, str]] = (),
    *,
    home: str = "",
    action: str = "",
    **details: Any,
) -> HttpResponse:
    """Ask for confirmation of a change; ``fields`` repeat the request, ``details`` are passed to the confirmation."""
    leave_url = home or back_url(request, request.answers.home)
    confirmation = notices.Confirmation(
        title=title,
        reasons=tuple(reasons),
        action=action or request.path,
        fields=(*fields, ("next", leave_url), ("confirm", "yes")),
        confirm_word=verb,
        back=leave_url,
        **details,
    )
    return ask_confirmation(request, confirmation)


def undo_entry(request: http.Request, change: writing.Change) -> int | None:
    """Return the audit entry that the notice of a change offers to undo; None without the permission."""
    entry = queries.change(change.entry) if change.entry is not None else None
    return change.entry if entry is not None and rights.may_undo(request.user, entry) else None


def see_other(request: http.Request, address: str) -> HttpResponse:
    """Redirect to a page that is fetched with GET."""
    if request.htmx:
        return HttpResponseClientRedirect(address)
    return HttpResponseRedirect(address, status=303)


def actor(request: http.Request) -> writing.Actor:
    """Return the user of the request as an actor."""
    return writing.Actor(name=request.user.get_username(), via="screen", kind="person")


def write(request: http.Request, data: Mapping[str, Any] = MappingProxyType({})) -> writing.Write:
    """Return a write by the user of the request, with the ``reason`` and ``confirm`` of the form ``data``."""
    return writing.Write(
        actor=actor(request), reason=data.get("reason", ""), confirm=data.get("confirm", False)
    )


def require_read(kind: str) -> Callable[[_View], _View]:
    """Return a decorator of views that responds with 403 unless the user may see entries of this kind."""

    def check(user: rights.User) -> bool:
        if not rights.may_read(user, kind):
            raise PermissionDenied
        return True

    return user_passes_test(check)


def require_flip(view: _View) -> _View:
    """Return the view with a check: 403 unless the user may flip the switches of the agent in the URL."""

    @functools.wraps(view)
    def guarded(request: http.Request, agent: str, *args: Any, **values: Any) -> HttpResponseBase:
        if not rights.may_flip(request.user, agent):
            raise PermissionDenied
        return view(request, agent, *args, **values)

    return cast("_View", guarded)


def back_url(request: http.Request, default: str) -> str:
    """Return the URL of this site that the form names as ``next``, otherwise ``default``."""
    address = request.POST.get("next", "")
    is_safe = url_has_allowed_host_and_scheme(
        address, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return address if is_safe else default


def current_address(request: http.Request) -> str:
    """Return the URL of the page that this request shows, or redirects back to."""
    if request.method in ("GET", "HEAD"):
        return request.get_full_path()
    answers = getattr(request, "answers", None)
    return back_url(request, answers.home if answers is not None else request.path).partition("#")[0]


def show(
    request: http.Request, page: pieces.Page, template: str, part: str = "", status: int = 200
) -> HttpResponse:
    """Render a page with its notice, or for htmx its ``part``."""
    is_partial = bool(part and request.htmx)
    if not is_partial and page.notice is None:
        page.notice = pop_notice(request)[0]
    context = {"page": page, "is_partial": is_partial}
    return render(request, part if is_partial else template, context, status=status)


def refresh(
    request: http.Request, notice: notices.Notice, change: effects.Effect | None, status: int = 200
) -> HttpResponse:
    """Return a response that makes htmx reload its page, which then shows the notice."""
    keep_notice(request, notice, change)
    return HttpResponseClientRefresh()


def ask_confirmation(request: http.Request, confirmation: notices.Confirmation) -> HttpResponse:
    """Ask for confirmation of a change: in a dialog for htmx, on a separate page for a browser.

    The status is 200, because a browser would log anything else as an error.
    """
    template = "kit/_answer.html" if request.htmx else "kit/confirm.html"
    return render(request, template, {"confirmation": confirmation})


def keep_notice(request: http.Request, notice: notices.Notice, change: effects.Effect | None = None) -> None:
    """Store a notice, and the effect of the change, for the next page."""
    request.session[_NOTICE_KEY] = {
        "notice": dataclasses.asdict(notice),
        "effect": dataclasses.asdict(change) if change is not None else None,
    }


def pop_notice(request: http.Request) -> tuple[notices.Notice | None, effects.Effect | None]:
    """Remove and return the notice for this page, and the effect of its change. A HEAD request shows none."""
    if live.RELOAD in request.headers or request.method == "HEAD":
        return None, None
    stored: dict[str, Any] = request.session.pop(_NOTICE_KEY, None) or {}
    try:
        notice = notices.Notice(**stored["notice"])
        return notice, effects.Effect(**_with_tuples(stored["effect"])) if stored["effect"] else None
    except (KeyError, TypeError):
        # There is none, or another version of Toolbelt stored it, which must not break every page of the session.
        return None, None


def _with_tuples(effect: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored effect with tuples instead of the lists of JSON."""
    names = ("added", "removed", "on_request_added", "on_request_removed", "breaks")
    lists = {name: tuple(effect.get(name, ())) for name in names}
    return {**effect, **lists, "policy": tuple(map(tuple, effect["policy"]))}
