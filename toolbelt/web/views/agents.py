"""The list of agents, and the way to it."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from toolbelt.web import forms
from toolbelt.web.pages import agents


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Lead to the agents, which is what operators come for."""
    return redirect("web:agents")


@require_safe
def listing(request: HttpRequest) -> HttpResponse:
    """Show the agents, or only their table to htmx."""
    in_place = request.headers.get("HX-Request") == "true"
    shown = {
        "page": agents.page(forms.said(forms.AgentsFilter(request.GET)), request.path),
        "in_place": in_place,
    }
    return render(request, "agents/_table.html" if in_place else "agents/list.html", shown)
