"""The sessions of one agent, and evicting one of them."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.core.exceptions import PermissionDenied
from django.http import HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control.agents import sessions
from toolbelt.control.people import rights
from toolbelt.core import effects
from toolbelt.web.kit import filters, http, notices, pieces, responses
from toolbelt.web.sessions import forms, view_model


@require_safe
def page(request: http.Request, agent: str) -> HttpResponse:
    """Show the sessions that have loaded something, or only their list to htmx."""
    return responses.show(request, _page(request, agent), "sessions/sessions.html", "sessions/_filtered.html")


@require_POST
def evict(request: http.Request, agent: str) -> HttpResponse:
    """Forget what a session has loaded, after a confirmation."""
    if not rights.may_change_sessions(request.user, "delete", agent):
        raise PermissionDenied
    form = forms.Eviction(request.POST)
    home = reverse("web:sessions", args=[agent])

    def parts(notice: notices.Notice, change: effects.Effect | None, status: int) -> HttpResponse:
        shown = _page(request, agent)
        shown.notice = notice
        return render(request, "sessions/_evicted.html", {"page": shown}, status=status)

    responses.declare(request, home, parts=parts, undone="Not evicted")
    session = form.checked()["session"]
    if not form.cleaned_data["confirm"]:
        reasons = (
            f"The session loses everything it loaded. Its next request starts with what {agent} has in every session.",
            "Its connections to upstream servers close, and the servers' state for it is lost.",
            "This cannot be undone, but the agent can load what it needs again.",
        )
        fields = [("session", session)]
        return responses.ask(request, f"Evict session {session}?", "Evict session", reasons, fields)
    sessions.evict(responses.write(request, form.cleaned_data), agent, session)
    return responses.respond(request, notices.Notice(text=f"Session {session} of {agent} evicted."))


def _page(request: http.Request, agent: str) -> pieces.View:
    shown = view_model.page(
        agent,
        filters.read(forms.Sessions(QueryDict(urlsplit(responses.current_address(request)).query))),
        path=reverse("web:sessions", args=[agent]),
        may_see_calls=rights.may_read(request.user, "call_record"),
    )
    shown.may_change = rights.may_flip(request.user, agent)
    shown.may_evict = rights.may_change_sessions(request.user, "delete", agent)
    return shown
