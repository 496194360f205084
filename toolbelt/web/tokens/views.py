"""API tokens: the list, issuing a token, and revoking it.

A token's text is in the response to the form that issued it, and is stored nowhere, not in the session either. That
form is therefore answered with a page, and not with a redirect.
"""

from __future__ import annotations

from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control.people import rights, tokens
from toolbelt.core import effects, errors
from toolbelt.web.kit import filters, http, notices, pieces, responses
from toolbelt.web.kit import forms as kit
from toolbelt.web.tokens import forms, view_model

_ISSUE = rights.permission("add", "api_token")
_REVOKE = rights.permission("change", "api_token")


@require_safe
@responses.reading("api_token")
def listing(request: http.Request) -> HttpResponse:
    """Show the tokens, or only their list to htmx."""
    return responses.show(request, _page(request), "tokens/list.html", "tokens/_filtered.html")


@require_POST
@permission_required(_ISSUE, raise_exception=True)
@responses.reading("api_token")
def issue(request: http.Request) -> HttpResponse:
    """Issue a token, and show its text once, beside the list."""
    form = forms.Token(request.POST)

    def show_again(error: errors.ToolbeltError, status: int) -> HttpResponse:
        form.refuse(error, otherwise="agent")
        return responses.show(request, _page(request, form), "tokens/list.html", "tokens/_form.html", 422)

    responses.declare(request, reverse("web:tokens"), form=show_again)
    issued = tokens.issue(responses.write(request), **form.arguments(request.user.get_username()))
    page = _page(request)
    page.issued, page.whose = issued, view_model.owner_words(issued.token)
    return responses.show(request, page, "tokens/list.html", "tokens/_issued.html")


@require_POST
@permission_required(_REVOKE, raise_exception=True)
def revoke(request: http.Request, token: str) -> HttpResponse:
    """Revoke a token, after a confirmation."""
    form = kit.Change(request.POST)
    home = reverse("web:tokens")

    def parts(notice: notices.Notice, change: effects.Effect | None, status: int) -> HttpResponse:
        page = _page(request)
        page.notice = notice
        return render(request, "tokens/_revoked.html", {"page": page}, status=status)

    responses.declare(request, home, parts=parts, undone="Not revoked")
    if not form.checked()["confirm"]:
        reasons = (
            "Requests with this token will be rejected.",
            "This cannot be undone. You can issue a new token.",
        )
        return responses.ask(request, f"Revoke token {token}?", "Revoke token", reasons)
    revoked = tokens.revoke(responses.write(request, form.cleaned_data), token)
    text = f"Token {revoked.prefix} of {view_model.owner_words(revoked)} revoked."
    return responses.respond(request, notices.Notice(text=text))


def _page(request: http.Request, form: forms.Token | None = None) -> pieces.View:
    """Return the list with the form that issues a token, for users who may."""
    narrowed = filters.read(forms.Tokens(request.GET))
    page = view_model.page(narrowed, path=reverse("web:tokens"))
    page.form = None
    if request.user.has_perm(_ISSUE):
        page.form = form or forms.Token.empty(narrowed["agent"])
        page.form.offer()
    return page
