"""What was changed about one agent."""

from __future__ import annotations

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from toolbelt.control.people import rights
from toolbelt.web.changes import forms as changes
from toolbelt.web.history import view_model
from toolbelt.web.kit import filters, http, responses


@require_safe
def page(request: http.Request, agent: str) -> HttpResponse:
    """Show the history, or only its entries to htmx."""
    narrowed = filters.read(changes.Changes(request.GET))
    shown = view_model.page(agent, narrowed, path=request.path, may_undo=rights.undo_check(request.user))
    shown.may_change = rights.may_flip(request.user, agent)
    return responses.show(request, shown, "history/history.html", "history/_history.html")
