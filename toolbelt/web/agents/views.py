"""The list of agents."""

from __future__ import annotations

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from toolbelt.control.people import rights
from toolbelt.web.agents import forms, view_model
from toolbelt.web.kit import filters, http, responses


@require_safe
def listing(request: http.Request) -> HttpResponse:
    """Show the agents, or only their table to htmx."""
    may_flip = rights.flip_check(request.user)
    page = view_model.page(filters.read(forms.Agents(request.GET)), request.path, may_flip=may_flip)
    return responses.show(request, page, "agents/list.html", "agents/_table.html")
