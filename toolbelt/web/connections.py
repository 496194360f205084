"""Connections of MCP clients that signed in: the list, how far other clients came, and revoking a connection.

Everyone sees their own connections and may revoke them. Those of others require permissions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control.people import client_connections, rights, sign_in_attempts
from toolbelt.web.kit import fields, filters, http, notices, pieces, responses, titles, words
from toolbelt.web.kit import forms as kit

Step = sign_in_attempts.Step

_REVOKE = rights.permission("change", "connection")
_STEPS: Mapping[Step | Literal["call"], str] = {
    "discovery": "Discovery",
    "registration": "Registration",
    "login": "Login",
    "consent": "Consent",
    "token": "Token",
    "call": "First call",
}
# What to do about a client that came no further than this step, without an error.
_WAITING: Mapping[Step, str] = {
    "discovery": "It read where to sign in, and has not registered. Press Connect or Authenticate in the client. If it"
    " does not open a browser, connect it with a token instead.",
    "registration": "It has registered, and no one has opened its question yet. Press Connect or Authenticate in the"
    " client, in a browser in which you can log in here.",
    "login": "Its question was opened, and not answered. Connect again in the client, and press Allow.",
    "consent": "It was allowed, and did not fetch its token. Its code is valid for a minute: connect again in the"
    " client. If that does not help, the client cannot be reached at the address to which you were sent back.",
    "token": "It has a token, and has not sent a request with it. Reload its tools, or restart the client.",
}
# What to do about an error, by its code.
_FAILED: Mapping[str, str] = {
    "access_denied": "Connect again in the client, and press Allow. A person needs the role operator, or must be an"
    " operator of this agent.",
    "invalid_client": "The client uses a registration that was removed. Remove the server from the client and add it"
    " again.",
    "invalid_grant": "Connect again in the client: its sign-in has ended, was revoked, or was used twice.",
    "invalid_request": "The client must send a PKCE challenge with the method S256, and the address to which it has"
    " registered to return. Remove the server from the client and add it again, or update the client.",
    "invalid_target": "The client must name the agent's address as it is on the agent's Connect page. Remove the server"
    " from the client and add it with that address.",
    "unsupported_grant_type": "The client must ask for an authorization code. Update it, or connect it with a token.",
}
_OTHERWISE = "Update the client, or connect it with a token."


class Criteria(forms.Form):
    """The agent whose connections are shown; empty: all."""

    agent = forms.CharField(required=False, max_length=64)
    q = fields.Query()


@require_safe
def listing(request: http.Request) -> HttpResponse:
    """Show the connections that the user may see."""
    return responses.show(request, _Page(request), "connections/list.html", "connections/_list.html")


@require_POST
def revoke(request: http.Request, connection: int) -> HttpResponse:
    """Revoke a connection, after a confirmation."""
    found, form = _find(request, connection), kit.Change(request.POST)
    parts = responses.swap_in(request, "connections/_revoked.html", lambda: _Page(request))
    responses.declare(request, reverse("web:connections"), parts=parts, refusal="Not revoked")
    of_user = None if request.user.has_perm(_REVOKE) else request.user.pk
    if not form.checked()["confirm"]:
        reasons = (
            f"{found.client} can no longer use {found.agent} for {found.person}, from its next request on.",
            "To connect it again, sign in from the client.",
        )
        return responses.ask(request, f"Revoke {found.client}?", "Revoke connection", reasons)
    client_connections.revoke(responses.write(request, form.cleaned_data), connection, of_user=of_user)
    return responses.respond(request, notices.Notice(text=f"Connection of {found.client} revoked."))


def _find(request: http.Request, connection: int) -> client_connections.Connection:
    """Return a connection. Raise NotFound, or PermissionDenied for another person's without the permission."""
    found = client_connections.find(connection)
    if found.person != request.user.get_username() and not request.user.has_perm(_REVOKE):
        raise PermissionDenied
    return found


class _Page(pieces.Page):
    """The connections, and the clients that are on the way to one."""

    def __init__(self, request: http.Request) -> None:
        criteria, user = filters.read(Criteria(request.GET)), request.user
        agent = criteria["agent"]
        self.sees_all = rights.may_read(user, "connection")
        may_revoke = user.has_perm(_REVOKE)
        me = user.get_username()
        listed = client_connections.listed(agent, None if self.sees_all else user.pk)
        matching = [
            Line(found, may_revoke=may_revoke or found.person == me)
            for found in listed
            if words.contains(criteria["q"], found.client, found.agent, found.person, found.redirect_host)
        ]
        self.connections = [line for line in matching if not line.is_over]
        self.ended = [line for line in matching if line.is_over]
        self.attempts = [
            AttemptLine(attempt) for attempt in (sign_in_attempts.unfinished(agent) if self.sees_all else ())
        ]
        self.agent = agent
        self.agent_title = titles.agent_options().get(agent, agent) if agent else ""
        self.query = criteria["q"]
        self.total = len(listed)
        self.can_connect = user.has_perm(rights.USE)


class Line(pieces.View):
    """A connection with its state."""

    def __init__(self, connection: client_connections.Connection, *, may_revoke: bool) -> None:
        self.connection = connection
        self.is_over = connection.revoked is not None
        self.may_be_revoked = may_revoke and not self.is_over
        self.state, self.tone = _state(connection)


def _state(connection: client_connections.Connection) -> tuple[str, str]:
    if connection.revoked is not None:
        return "revoked", "quiet"
    if not connection.is_person_active:
        return "not valid: the person is deactivated", "quiet"
    if connection.is_agent_archived:
        return "not valid: the agent is archived", "quiet"
    if not connection.is_signed_in:
        return "signed out", "warning"
    return "connected", "good"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mark:
    """A step of an attempt: done, failed, next, or later."""

    label: str
    state: Literal["done", "failed", "next", "later"]


class AttemptLine(pieces.View):
    """How far a client came, the request that failed, and what to do."""

    def __init__(self, attempt: sign_in_attempts.Attempt) -> None:
        self.attempt = attempt
        self.marks: Sequence[_Mark] = _marks(attempt)
        self.way_out = _FAILED.get(attempt.error, _OTHERWISE) if attempt.error else _WAITING[attempt.step]


def _marks(attempt: sign_in_attempts.Attempt) -> Sequence[_Mark]:
    names = [*_STEPS]
    reached = names.index(attempt.step)
    marks = []
    for number, name in enumerate(names):
        state: Literal["done", "failed", "next", "later"] = "later"
        if number <= reached:
            state = "done"
        elif number == reached + 1:
            state = "failed" if attempt.error else "next"
        marks.append(_Mark(label=_STEPS[name], state=state))
    return marks
