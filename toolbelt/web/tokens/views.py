"""API tokens: who has one, issuing one, and revoking one.

A token's text stands in the answer to the form that asked for it, and is kept nowhere: not in the session either,
which is a row. So that one form is answered with a page, not by leading back to one.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.contrib.auth.decorators import permission_required
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control.people import rights, tokens
from toolbelt.core import effects, errors
from toolbelt.web.kit import filters, http, notices, pieces, responses
from toolbelt.web.kit import forms as kit
from toolbelt.web.tokens import forms, view_model

_ISSUE = rights.permission("add", "api_token")
_REVOKE = rights.permission("change", "api_token")


@require_safe
def listing(request: http.Request) -> HttpResponse:
    """Show the tokens, or only their list to htmx."""
    _check_sight(request)
    in_place = request.htmx
    notice = None if in_place else responses.pop_notice(request)[0]
    shown = {"page": _filled(request, notice)}
    return render(request, "tokens/_tokens.html" if in_place else "tokens/list.html", shown)


@require_POST
@permission_required(_ISSUE, raise_exception=True)
def issue(request: http.Request) -> HttpResponse:
    """Issue a token, and show it this once, beside those that there are."""
    _check_sight(request)

    def again(error: errors.ToolbeltError, status: int) -> HttpResponse:
        wrong = (
            view_model.problems(error.problems)
            if isinstance(error, errors.Invalid)
            else {"agent": str(error)}
        )
        typed = {name: request.POST.get(name, "") for name in forms.Token.base_fields}
        form = view_model.form(typed, me=request.user.get_username(), problems=wrong)
        return _answered(request, "tokens/_form.html", "tokens/list.html", status=422, wanted=form)

    responses.declare(request, reverse("web:tokens"), form=again)
    given = forms.Token(request.POST).checked()
    mine = given["owner"] == "me"
    days = given["days"]
    issued = tokens.issue(
        responses.write(request),
        name=given["name"],
        agent=None if mine else given["agent"],
        user=request.user.get_username() if mine else None,
        scope=given["scope"] if mine else "",
        expires=timezone.now() + dt.timedelta(days=days) if days else None,
    )
    return _answered(request, "tokens/_issued.html", "tokens/list.html", issued=issued)


@require_POST
@permission_required(_REVOKE, raise_exception=True)
def revoke(request: http.Request, token: str) -> HttpResponse:
    """Let a token open nothing any more, once somebody has said that this is meant."""
    form = kit.Change(request.POST)
    home = reverse("web:tokens")

    def parts(notice: notices.Notice, change: effects.Effect | None, status: int) -> HttpResponse:
        return render(request, "tokens/_revoked.html", {"page": _filled(request, notice)}, status=status)

    responses.declare(request, home, parts=parts, undone="Not revoked")
    if not form.checked()["confirm"]:
        return responses.ask_confirmation(request, _question(request, token, responses.back(request, home)))
    gone = tokens.revoke(responses.write(request, form.cleaned_data), token)
    text = f"Token {gone.prefix} of {view_model.whose(gone)} revoked."
    return responses.respond(request, notices.Notice(text=text))


def _check_sight(request: http.Request) -> None:
    if not rights.may_read(request.user, "api_token"):
        raise PermissionDenied


def _question(request: http.Request, token: str, back: str) -> notices.Confirmation:
    return notices.Confirmation(
        title=f"Revoke token {token}?",
        reasons=(
            "Requests with this token will be rejected.",
            "This cannot be undone. You can issue a new token.",
        ),
        effect=None,
        differences=(),
        three_ways=False,
        action=request.path,
        fields=(pieces.Field(name="next", value=back), pieces.Field(name="confirm", value="yes")),
        confirm_word="Revoke token",
        dangerous=True,
        back=back,
    )


def _filled(request: http.Request, notice: notices.Notice | None = None, **said: Any) -> pieces.View:
    home = reverse("web:tokens")
    return view_model.page(
        filters.read(forms.Tokens(request.GET)),
        me=request.user.get_username(),
        path=home,
        here=responses.here(request, home),
        notice=notice,
        may_issue=request.user.has_perm(_ISSUE),
        may_revoke=request.user.has_perm(_REVOKE),
        **said,
    )


def _answered(
    request: http.Request, part: str, whole: str, *, status: int = 200, **said: Any
) -> HttpResponse:
    template = part if request.htmx else whole
    return render(request, template, {"page": _filled(request, **said)}, status=status)
