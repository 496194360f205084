"""Responses to changes: parts of the page for htmx, a redirect for a browser, or the form or a question again.

:class:`ErrorMiddleware` answers the errors of the domain in the same way.
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

from toolbelt.control import actors, writing
from toolbelt.control.people import rights
from toolbelt.control.reports import queries
from toolbelt.core import effects, errors
from toolbelt.web.kit import forms, http, live, model_panel, notices, pieces, words

_KEPT = "toolbelt.notice"
_View = TypeVar("_View", bound=Callable[..., HttpResponseBase])
# What renders the parts of a page that htmx swaps in: with the notice, what the change did, and the status.
Parts = Callable[[notices.Notice, effects.Effect | None, int], HttpResponse]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The way in which a view answers. Without `parts`, htmx is redirected as a browser is.

    `home` is the page to redirect to, unless the form names another one; `parts` renders what htmx swaps in;
    `undone` starts the notice of a refusal; `form` shows the form again with an error, in place of that notice.
    The question before a change that needs a confirmation has a `title`, a button with the `verb`, and repeats `fields`
    of the form; `question` asks it in another way.
    """

    home: str
    parts: Parts | None = None
    undone: str = "Not changed"
    form: Callable[[errors.ToolbeltError, int], HttpResponse] | None = None
    title: str = ""
    verb: str = ""
    fields: tuple[str, ...] = ()
    question: Callable[[Any], HttpResponse] | None = None


class ErrorMiddleware(MiddlewareMixin):
    """Answer the errors of the domain that views let through: 404, 409 or 422, or the question that they ask."""

    async_capable = False

    def process_exception(self, request: http.Request, error: Exception) -> HttpResponse | None:
        """Answer as the view declared. Raise Http404 if what the address names does not exist."""
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
        how: Answers | None = getattr(request, "answers", None)
        if isinstance(error, errors.NotFound) and (how is None or error.name in address.values()):
            raise error
        if how is None or isinstance(error, errors.Unavailable):
            return None
        if isinstance(error, errors.ConfirmationRequired):
            return (
                how.question(error) if how.question else ask_confirmation(request, question(request, error))
            )
        status = 409 if isinstance(error, errors.Stale | errors.NotFound) else 422
        return how.form(error, status) if how.form is not None else refuse(request, error, status)


def declare(request: http.Request, home: str, **how: Any) -> None:
    """Declare how this request is answered, with the fields of :class:`Answers`."""
    request.answers = Answers(home=home, **how)


def respond(
    request: http.Request, notice: notices.Notice, change: effects.Effect | None = None, status: int = 200
) -> HttpResponse:
    """Answer as the view declared: with parts of the page, or with a redirect to a page that shows the notice.

    The page that requested a question with htmx stays as it is, with what is selected on it, and gets the notice.
    The status is 200, because a browser would log anything else as an error.
    """
    how = request.answers
    if request.htmx and how.parts is not None:
        return how.parts(notice, change, status)
    if request.htmx and request.method == "GET":
        in_place = render(request, "_notice_parts.html", {"page": pieces.View(notice=notice)})
        return replace_url(reswap(in_place, "none"), False)
    keep_notice(request, notice, change)
    return see_other(request, back(request, how.home))


def respond_changed(
    request: http.Request, change: writing.Change, done: str, *, unchanged: str = "", **notice: Any
) -> HttpResponse:
    """Answer with a notice that says what was ``done``, and offers to undo it.

    If nothing changed, it says so instead: that it is done already, or ``unchanged``.
    """
    if change.is_nothing:
        return respond(request, notices.Notice(text=f"No changes: {unchanged or f'{done} already'}."))
    return respond(request, notices.Notice(text=f"{done}.", undo=change.entry, **notice), change.effect)


def swap_in(request: http.Request, template: str, page: Callable[[], pieces.View]) -> Parts:
    """Return a function that renders a template for htmx, with the ``page`` as it is after the change."""

    def parts(notice: notices.Notice, change: effects.Effect | None, status: int) -> HttpResponse:
        shown = page()
        shown.notice = notice
        return render(request, template, {"page": shown}, status=status)

    return parts


def refuse(request: http.Request, error: errors.ToolbeltError, status: int) -> HttpResponse:
    """Answer with a notice that says what was not done, and why."""
    mark = ":" if isinstance(error, forms.FormError) else "."
    text = f"{request.answers.undone}{mark} {error}"
    return respond(request, notices.Notice(text=text, tone="refused"), status=status)


def question(request: http.Request, error: errors.ConfirmationRequired) -> notices.Confirmation:
    """Return the question that the error asks, in the words that the view declared."""
    how, differences = request.answers, error.differences
    tools = tuple(model_panel.tool_changes(differences["added"], differences["removed"]))
    notes = (
        *model_panel.notes(differences["policy"]),
        *model_panel.consequences(differences.get("breaks", ()), differences.get("sessions")),
    )
    return notices.Confirmation(
        title=how.title,
        reasons=tuple(map(words.with_few_names, error.reasons)),
        effect=pieces.Effect(
            tools=differences["tools"],
            tokens=differences["tokens"],
            notes=notes or (() if tools else ("No change for the model.",)),
        ),
        differences=tools,
        action=request.path,
        fields=(
            *((name, value) for name in how.fields for value in request.POST.getlist(name)),
            ("confirm", "yes"),
        ),
        confirm_word=how.verb,
        back=back(request, how.home),
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
    **shown: Any,
) -> HttpResponse:
    """Ask before a change; ``fields`` repeat the request, and ``shown`` is what else a confirmation shows."""
    leave = home or back(request, request.answers.home)
    question = notices.Confirmation(
        title=title,
        reasons=tuple(reasons),
        action=action or request.path,
        fields=(*fields, ("next", leave), ("confirm", "yes")),
        confirm_word=verb,
        back=leave,
        **shown,
    )
    return ask_confirmation(request, question)


def undo_of(request: http.Request, done: writing.Change) -> int | None:
    """Return the entry that the notice of a change offers to undo, if the user may."""
    made = queries.change(done.entry) if done.entry is not None else None
    return done.entry if made is not None and rights.may_undo(request.user, made) else None


def see_other(request: http.Request, address: str) -> HttpResponse:
    """Redirect to a page that is fetched with GET."""
    if request.htmx:
        return HttpResponseClientRedirect(address)
    return HttpResponseRedirect(address, status=303)


def actor(request: http.Request) -> actors.Actor:
    """Return the user who sent this."""
    return actors.Actor(name=request.user.get_username(), via="screen")


def write(request: http.Request, given: Mapping[str, Any] = MappingProxyType({})) -> writing.Write:
    """Return a write by the user who sent this, with the ``reason`` and ``confirm`` that were ``given``."""
    return writing.Write(
        actor=actor(request), reason=given.get("reason", ""), confirm=given.get("confirm", False)
    )


def reading(kind: str) -> Callable[[_View], _View]:
    """Return the decorator of views for users who may see entries of this kind; others get 403."""

    def check(user: rights.User) -> bool:
        if not rights.may_read(user, kind):
            raise PermissionDenied
        return True

    return user_passes_test(check)


def flipping(view: _View) -> _View:
    """Return a view for users who may flip the switches of the agent in the address; others get 403 first."""

    @functools.wraps(view)
    def guarded(request: http.Request, agent: str, *args: Any, **values: Any) -> HttpResponseBase:
        if not rights.may_flip(request.user, agent):
            raise PermissionDenied
        return view(request, agent, *args, **values)

    return cast("_View", guarded)


def back(request: http.Request, otherwise: str) -> str:
    """Return the page of this site that the form names to come back to, if there is one."""
    address = request.POST.get("next", "")
    ours = url_has_allowed_host_and_scheme(
        address, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return address if ours else otherwise


def current_address(request: http.Request) -> str:
    """Return the address of the page that this request shows, or leads back to."""
    if request.method in ("GET", "HEAD"):
        return request.get_full_path()
    how = getattr(request, "answers", None)
    return back(request, how.home if how is not None else request.path).partition("#")[0]


def show(
    request: http.Request, page: pieces.View, template: str, part: str = "", status: int = 200
) -> HttpResponse:
    """Render a page with its notice, or for htmx the ``part`` of it that is swapped in."""
    in_place = bool(part and request.htmx)
    if not in_place and not hasattr(page, "notice"):
        page.notice = pop_notice(request)[0]
    shown = {"page": page, "in_place": in_place}
    return render(request, part if in_place else template, shown, status=status)


def refresh(
    request: http.Request, notice: notices.Notice, change: effects.Effect | None, status: int = 200
) -> HttpResponse:
    """Return a response that makes htmx reload its page, which shows the notice."""
    keep_notice(request, notice, change)
    return HttpResponseClientRefresh()


def ask_confirmation(request: http.Request, question: notices.Confirmation) -> HttpResponse:
    """Ask before anything is changed: in a dialog for htmx, on a page of its own for a browser.

    The status is 200: a browser would log anything else as an error.
    """
    template = "kit/_answer.html" if request.htmx else "kit/confirm.html"
    return render(request, template, {"confirmation": question})


def keep_notice(request: http.Request, notice: notices.Notice, change: effects.Effect | None = None) -> None:
    """Keep a notice, and what the change did, for the next page."""
    request.session[_KEPT] = {
        "notice": dataclasses.asdict(notice),
        "effect": dataclasses.asdict(change) if change is not None else None,
    }


def pop_notice(request: http.Request) -> tuple[notices.Notice | None, effects.Effect | None]:
    """Take the notice that a change left for this page, and what the change did. A HEAD request shows nothing."""
    if live.AGAIN in request.headers or request.method == "HEAD":
        return None, None
    stored: dict[str, Any] = request.session.pop(_KEPT, None) or {}
    try:
        notice = notices.Notice(**stored["notice"])
        return notice, effects.Effect(**_with_tuples(stored["effect"])) if stored["effect"] else None
    except (KeyError, TypeError):
        # None was kept, or another version of Toolbelt kept it: it must not break every page of the session.
        return None, None


def _with_tuples(effect: Mapping[str, Any]) -> dict[str, Any]:
    """Return an effect with the tuples that JSON turned into lists."""
    lists = {name: tuple(effect[name]) for name in ("added", "removed", "breaks")}
    return {**effect, **lists, "policy": tuple(map(tuple, effect["policy"]))}
