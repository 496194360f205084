"""What was changed about one agent."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from toolbelt.control.people import rights
from toolbelt.web.changes import forms as changes
from toolbelt.web.history import view_model
from toolbelt.web.kit import filters, http, responses


@require_safe
def page(request: http.Request, agent: str) -> HttpResponse:
    """Show the history, or only its entries to htmx."""
    in_place = request.htmx
    filled = view_model.page(
        agent,
        filters.read(changes.History(request.GET)),
        path=request.path,
        here=request.get_full_path(),
        notice=None if in_place else responses.pop_notice(request)[0],
        may_change=rights.may_flip(request.user, agent),
        may_undo=rights.undo_check(request.user),
    )
    shown = {"page": filled, "in_place": in_place}
    return render(request, "history/_history.html" if in_place else "history/history.html", shown)
