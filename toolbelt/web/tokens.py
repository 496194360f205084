"""API tokens: the list, issuing a token, and revoking it.

The text of a token is only in the response to the form that issued it, and is not stored, not even in the session. So
the response to that form is a page, and not a redirect.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django import forms
from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control.people import rights, tokens
from toolbelt.core import errors
from toolbelt.web.kit import fields, filters, http, notices, paging, pieces, responses, titles, words
from toolbelt.web.kit import forms as kit

SCOPES = {"read": "Read", "write": "Read and write"}
# A token that expires within this time is marked.
_SOON_SECONDS = 7 * 24 * 3600
_ISSUE = rights.permission("add", "api_token")
_REVOKE = rights.permission("change", "api_token")


_REJECTIONS: Mapping[tokens.Rejection, str] = {
    "revoked": "revoked",
    "expired": "expired",
    "archived": "not valid: its agent is archived",
    "deactivated": "not valid: its user is deactivated",
}


class Token(kit.Fields, kit.Change):
    """A new token: its owner, its name, and when it expires."""

    owner = forms.ChoiceField(choices=[("agent", "agent"), ("me", "me")])
    agent = forms.CharField(
        required=False,
        max_length=64,
        widget=forms.Select,
        help_text="The token acts only for this agent.",
    )
    scope = forms.ChoiceField(
        required=False,
        choices=list(SCOPES.items()),
        help_text="The token never exceeds your own permissions.",
    )
    name = forms.CharField(required=False)
    days = forms.TypedChoiceField(
        required=False,
        label="Expires",
        choices=[
            ("7", "In 7 days"),
            ("30", "In 30 days"),
            ("90", "In 90 days"),
            ("365", "In a year"),
            ("", "Never"),
        ],
        coerce=int,
        empty_value=None,
    )

    @classmethod
    def empty(cls, agent: str) -> Token:
        """Return the form with its initial values."""
        return cls(initial={"owner": "agent", "agent": agent, "days": "90"})

    def field_at(self, path: str) -> str | None:
        """Return the field of a path; the expiry is chosen as a number of days."""
        return super().field_at("days" if path == "expires" else path)

    def set_choices(self) -> None:
        """Set the agents to choose from; only a form that is rendered needs them."""
        self.choose("agent", [("", "Choose an agent"), *titles.agent_options().items()])

    def arguments(self, me: str) -> dict[str, Any]:
        """Return the keyword arguments of control.people.tokens.issue."""
        data = self.checked()
        is_own, days = data["owner"] == "me", data["days"]
        return {
            "name": data["name"],
            "agent": None if is_own else data["agent"],
            "user": me if is_own else None,
            "scope": data["scope"] if is_own else "",
            "expires": timezone.now() + dt.timedelta(days=days) if days else None,
        }


class Tokens(forms.Form):
    """The filters of the list, and the agent of the next token."""

    q = fields.Query()
    agent = forms.CharField(required=False, max_length=64)
    offset = fields.Offset()
    gone_offset = fields.Offset()


@require_safe
@responses.require_read("api_token")
def listing(request: http.Request) -> HttpResponse:
    """Show the tokens; htmx gets only their list."""
    return responses.show(request, _Page(request), "tokens/list.html", "tokens/_filtered.html")


@require_POST
@permission_required(_ISSUE, raise_exception=True)
@responses.require_read("api_token")
def issue(request: http.Request) -> HttpResponse:
    """Issue a token, and show its text once, beside the list."""
    form = Token(request.POST)

    def show_again(error: errors.ToolbeltError, status: int) -> HttpResponse:
        form.refuse(error, default_field="agent")
        return responses.show(request, _Page(request, form), "tokens/list.html", "tokens/_form.html", 422)

    responses.declare(request, reverse("web:tokens"), form=show_again)
    issued = tokens.issue(responses.write(request), **form.arguments(request.user.get_username()))
    page = _Page(request)
    page.issued, page.owner = issued, owner_label(issued.token)
    return responses.show(request, page, "tokens/list.html", "tokens/_issued.html")


@require_POST
@permission_required(_REVOKE, raise_exception=True)
def revoke(request: http.Request, token: str) -> HttpResponse:
    """Revoke a token, after a confirmation."""
    form = kit.Change(request.POST)
    parts = responses.swap_in(request, "tokens/_revoked.html", lambda: _Page(request))
    responses.declare(request, reverse("web:tokens"), parts=parts, refusal="Not revoked")
    if not form.checked()["confirm"]:
        reasons = (
            "Requests with this token will be rejected.",
            "This cannot be undone. You can issue a new token.",
        )
        return responses.ask(request, f"Revoke token {token}?", "Revoke token", reasons)
    revoked = tokens.revoke(responses.write(request, form.cleaned_data), token)
    text = f"Token {revoked.prefix} of {owner_label(revoked)} revoked."
    return responses.respond(request, notices.Notice(text=text))


class _Page(pieces.Page):
    """The list, with the form that issues a token for users with the permission, or the token that was just issued."""

    issued: tokens.Issued | None = None
    owner = ""

    def __init__(self, request: http.Request, form: Token | None = None) -> None:
        criteria, path, now = filters.read(Tokens(request.GET)), reverse("web:tokens"), timezone.now()
        all_tokens = tokens.all_tokens()
        matching = [
            token
            for token in all_tokens
            if words.contains(
                criteria["q"], token.prefix, token.name, token.agent, token.user, token.issued_by
            )
        ]
        valid = paging.part([token for token in matching if token.is_valid(now)], criteria["offset"])
        inactive = paging.part(
            [token for token in matching if not token.is_valid(now)], criteria["gone_offset"]
        )
        if request.user.has_perm(_ISSUE):
            form = form or Token.empty(criteria["agent"])
            form.set_choices()
        self.tokens = tuple(map(Line, valid.items))
        self.tokens_pages = valid.pages(criteria, path)
        self.inactive = tuple(map(Line, inactive.items))
        self.inactive_total = inactive.total
        self.inactive_pages = inactive.pages(criteria, path, name="gone_offset")
        self.inactive_open = bool(criteria["gone_offset"] or (criteria["q"] and not valid.total))
        self.query = criteria["q"]
        self.total = len(all_tokens)
        self.matches = f"{words.number(valid.total)} valid of {words.number(len(all_tokens))}"
        self.form = form


def owner_label(token: tokens.Token) -> str:
    """Return the owner of a token: ``agent ada``, ``olive, read``."""
    return f"agent {token.agent}" if token.agent else f"{token.user}, {token.scope}"


class Line(pieces.View):
    """A token with its state."""

    def __init__(self, token: tokens.Token) -> None:
        state, tone = _state(token, timezone.now())
        self.token = token
        self.scope = SCOPES.get(token.scope, "")
        self.state = state
        self.tone = tone
        self.is_inactive = tone == "quiet"
        # A token is valid again if its agent or user is brought back, unless it is revoked.
        self.may_be_revoked = token.rejection(timezone.now()) not in ("revoked", "expired")


def _state(token: tokens.Token, now: datetime) -> tuple[str, str]:
    if rejection := token.rejection(now):
        return _REJECTIONS[rejection], "quiet"
    if token.expires is not None and (token.expires - now).total_seconds() < _SOON_SECONDS:
        return "expires soon", "warning"
    return "valid", "good"
