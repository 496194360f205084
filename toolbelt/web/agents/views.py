"""The list of agents."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from toolbelt.control.people import rights
from toolbelt.web.agents import forms, view_model
from toolbelt.web.kit import filters, http, responses


@require_safe
def listing(request: http.Request) -> HttpResponse:
    """Show the agents, or only their table to htmx."""
    in_place = request.htmx
    shown = {
        "page": view_model.page(
            filters.read(forms.Agents(request.GET)),
            request.path,
            may_flip=rights.flip_check(request.user),
            notice=None if in_place else responses.pop_notice(request)[0],
        ),
        "in_place": in_place,
    }
    return render(request, "agents/_table.html" if in_place else "agents/list.html", shown)
