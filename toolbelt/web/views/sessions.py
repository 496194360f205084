"""The sessions of one agent, and letting one of them begin anew."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control import rights, sessions
from toolbelt.core import errors
from toolbelt.web.forms import edits, filters
from toolbelt.web.pages import sessions as pages
from toolbelt.web.presenters import answers, pieces
from toolbelt.web.presenters import sessions as presenters
from toolbelt.web.views import answering


@require_safe
def page(request: HttpRequest, agent: str) -> HttpResponse:
    """Show the sessions that have loaded something."""
    notice = answering.kept(request)[0]
    return render(request, "agents/sessions.html", {"page": _filled(request, agent, notice)})


@require_POST
def evict(request: HttpRequest, agent: str) -> HttpResponse:
    """Forget what a session has loaded, once somebody has said that this is meant."""
    if not rights.may_change_sessions(request.user, "delete", agent):
        raise PermissionDenied
    form = edits.Eviction(request.POST)
    if not form.is_valid():
        notice = answers.Notice(text=f"Not evicted: {form.problems()}", tone="refused")
        return _answered(request, agent, notice, 422)
    session = form.cleaned_data["session"]
    home = reverse("web:sessions", args=[agent])
    if not form.cleaned_data["confirm"]:
        return answering.asked(request, _question(request, agent, session, answering.back(request, home)))
    try:
        sessions.evict(answering.actor(request), agent, session, reason=form.cleaned_data["reason"])
    except errors.NotFound as gone:
        return _answered(request, agent, answers.Notice(text=f"Not evicted: {gone}", tone="refused"), 409)
    return _answered(request, agent, answers.Notice(text=f"Session {session} of {agent} begins anew."))


def _question(request: HttpRequest, agent: str, session: str, back: str) -> answers.Confirmation:
    fields = (("session", session), ("next", back), ("confirm", "yes"))
    return answers.Confirmation(
        title=f"Evict session {session}?",
        reasons=(
            f"What it has loaded is forgotten: its next request begins with what {agent} has in every session.",
            "This cannot be undone. The agent can load again what it needs.",
        ),
        effect=None,
        differences=(),
        three_ways=False,
        action=request.path,
        fields=tuple(pieces.Field(name=name, value=value) for name, value in fields),
        confirm_word="Evict",
        dangerous=True,
        back=back,
    )


def _filled(request: HttpRequest, agent: str, notice: answers.Notice | None) -> presenters.SessionsPage:
    home = reverse("web:sessions", args=[agent])
    here = request.get_full_path() if request.method == "GET" else answering.back(request, home)
    said = filters.said(filters.Place(request.GET))
    try:
        return pages.page(
            agent,
            said["offset"] or 0,
            path=home,
            here=here,
            notice=notice,
            may_change=rights.may_flip(request.user, agent),
            may_evict=rights.may_change_sessions(request.user, "delete", agent),
        )
    except errors.NotFound as error:
        raise Http404(str(error)) from error


def _answered(request: HttpRequest, agent: str, notice: answers.Notice, status: int = 200) -> HttpResponse:
    if not answering.is_in_place(request):
        return answering.led_back(request, reverse("web:sessions", args=[agent]), notice, None)
    shown = {"page": _filled(request, agent, notice)}
    return render(request, "agents/_evicted.html", shown, status=status)
