"""Connecting to one agent: a token is created, and stands in the command that connects.

As on the page of tokens, its text is in the response to the form that creates it, and nowhere else.
"""

from __future__ import annotations

from django.contrib.auth.decorators import permission_required
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control.people import rights, tokens
from toolbelt.web.connect import view_model
from toolbelt.web.kit import http, pieces, responses
from toolbelt.web.tokens import forms

_ISSUE = rights.permission("add", "api_token")


@require_safe
def page(request: http.Request, agent: str) -> HttpResponse:
    """Show the ways to connect, with the name of a variable in place of the token."""
    return _shown(request, agent, request.GET.get("way", ""))


@require_POST
@permission_required(_ISSUE, raise_exception=True)
@responses.reading("api_token")
def issue(request: http.Request, agent: str) -> HttpResponse:
    """Create a token of the agent, and show it once, where it belongs in the chosen way to connect."""
    way = request.POST.get("way", "")
    name = view_model.label_of(way)
    form = forms.Token({"owner": "agent", "agent": agent, "name": name, "days": request.POST.get("days", "")})
    responses.declare(request, reverse("web:connect", args=[agent]), undone="No token was created")
    issued = tokens.issue(responses.write(request), **form.arguments(request.user.get_username()))
    return _shown(request, agent, way, issued)


@require_safe
@responses.reading("api_token")
def first_request(request: http.Request, agent: str) -> HttpResponse:
    """Show whether a request with the token has come; to a page that still waits, with nothing to swap in."""
    status = view_model.first_request(agent, request.GET.get("token", ""))
    if status is None:
        raise Http404
    if status.is_polled and request.htmx:
        return HttpResponse(status=204)
    shown = pieces.View(agent=pieces.View(key=agent), status=status)
    return render(request, "connect/_first_request.html", {"page": shown})


def _shown(request: http.Request, agent: str, way: str, issued: tokens.Issued | None = None) -> HttpResponse:
    surface = request.build_absolute_uri(reverse("api:get_surface", args=[agent]))
    shown = view_model.page(agent, address=surface.removesuffix("surface"), chosen=way, issued=issued)
    user = request.user
    shown.may_change = rights.may_flip(user, agent)
    shown.may_issue = rights.may_read(user, "api_token") and user.has_perm(_ISSUE)
    prefix = issued.token.prefix if issued else request.GET.get("token", "")
    shown.status = view_model.first_request(agent, prefix) if rights.may_read(user, "api_token") else None
    shown.days = forms.Token.empty(agent)["days"]
    return responses.show(request, shown, "connect/connect.html", "connect/_connect.html")
