"""API tokens: who has one, issuing one, and revoking one.

A token's text stands in the answer to the form that asked for it, and is kept nowhere: not in the session either,
which is a row. So that one form is answered with a page, not by leading back to one.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.contrib.auth.decorators import permission_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control import rights, tokens
from toolbelt.core import errors
from toolbelt.web.forms import edits, filters
from toolbelt.web.pages import tokens as pages
from toolbelt.web.presenters import answers, pieces
from toolbelt.web.presenters import tokens as presenters
from toolbelt.web.views import answering

_ISSUE = rights.to("add", "api_token")
_REVOKE = rights.to("change", "api_token")


@require_safe
def listing(request: HttpRequest) -> HttpResponse:
    """Show the tokens, or only their list to htmx."""
    _check_sight(request)
    in_place = answering.is_in_place(request)
    notice = None if in_place else answering.kept(request)[0]
    shown = {"page": _filled(request, notice)}
    return render(request, "tokens/_tokens.html" if in_place else "tokens/list.html", shown)


@require_POST
@permission_required(_ISSUE, raise_exception=True)
def issue(request: HttpRequest) -> HttpResponse:
    """Issue a token, and show it this once, beside those that there are."""
    _check_sight(request)
    form = edits.Token(request.POST)
    if not form.is_valid():
        return _not_issued(request, edits.wrong(form))
    given = form.cleaned_data
    mine = given["owner"] == "me"
    days = given["days"]
    try:
        issued = tokens.issue(
            answering.actor(request),
            name=given["name"],
            agent=None if mine else given["agent"],
            user=request.user.get_username() if mine else None,
            scope=given["scope"] if mine else "",
            expires=timezone.now() + dt.timedelta(days=days) if days else None,
        )
    except errors.Invalid as invalid:
        return _not_issued(request, pages.problems(invalid.problems))
    except (errors.NotFound, errors.Refused) as refused:
        return _not_issued(request, {"agent": str(refused)})
    return _answered(request, "tokens/_issued.html", "tokens/list.html", issued=issued)


@require_POST
@permission_required(_REVOKE, raise_exception=True)
def revoke(request: HttpRequest, token: str) -> HttpResponse:
    """Let a token open nothing any more, once somebody has said that this is meant."""
    form = edits.Change(request.POST)
    home = reverse("web:tokens")
    if not form.is_valid():
        notice = answers.Notice(text=f"Not revoked: {form.problems()}", tone="refused")
        return _led(request, notice, 422)
    if not form.cleaned_data["confirm"]:
        return answering.asked(request, _question(request, token, answering.back(request, home)))
    try:
        gone = tokens.revoke(answering.actor(request), token, form.cleaned_data["reason"])
    except errors.NotFound as error:
        raise Http404(str(error)) from error
    return _led(request, answers.Notice(text=f"{gone.prefix} of {pages.whose(gone)} opens nothing any more."))


def _check_sight(request: HttpRequest) -> None:
    if not rights.may_read(request.user, "api_token"):
        raise PermissionDenied


def _question(request: HttpRequest, token: str, back: str) -> answers.Confirmation:
    return answers.Confirmation(
        title=f"Revoke {token}?",
        reasons=(
            "Whoever comes with it is refused from the next request on.",
            "This cannot be undone: who needs a token again is issued another one.",
        ),
        effect=None,
        differences=(),
        three_ways=False,
        action=request.path,
        fields=(pieces.Field(name="next", value=back), pieces.Field(name="confirm", value="yes")),
        confirm_word="Revoke",
        dangerous=True,
        back=back,
    )


def _filled(request: HttpRequest, notice: answers.Notice | None = None, **said: Any) -> presenters.TokensPage:
    home = reverse("web:tokens")
    return pages.page(
        filters.said(filters.Tokens(request.GET)),
        me=request.user.get_username(),
        path=home,
        here=request.get_full_path() if request.method == "GET" else answering.back(request, home),
        notice=notice,
        may_issue=request.user.has_perm(_ISSUE),
        may_revoke=request.user.has_perm(_REVOKE),
        **said,
    )


def _not_issued(request: HttpRequest, wrong: dict[str, str]) -> HttpResponse:
    typed = {name: request.POST.get(name, "") for name in edits.Token.base_fields}
    wanted = pages.form(typed, me=request.user.get_username(), problems=wrong)
    return _answered(request, "tokens/_form.html", "tokens/list.html", status=422, wanted=wanted)


def _answered(request: HttpRequest, part: str, whole: str, *, status: int = 200, **said: Any) -> HttpResponse:
    template = part if answering.is_in_place(request) else whole
    return render(request, template, {"page": _filled(request, **said)}, status=status)


def _led(request: HttpRequest, notice: answers.Notice, status: int = 200) -> HttpResponse:
    if answering.is_in_place(request):
        shown = {"page": _filled(request, notice)}
        return render(request, "tokens/_revoked.html", shown, status=status)
    return answering.led_back(request, reverse("web:tokens"), notice, None)
