"""The list of agents."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from toolbelt.control import rights
from toolbelt.web.forms import filters
from toolbelt.web.pages import agents
from toolbelt.web.views import answering


@require_safe
def listing(request: HttpRequest) -> HttpResponse:
    """Show the agents, or only their table to htmx."""
    in_place = request.headers.get("HX-Request") == "true"
    shown = {
        "page": agents.page(
            filters.said(filters.Agents(request.GET)),
            request.path,
            may_flip=rights.flippable(request.user),
            notice=None if in_place else answering.kept(request)[0],
        ),
        "in_place": in_place,
    }
    return render(request, "agents/_table.html" if in_place else "agents/list.html", shown)
