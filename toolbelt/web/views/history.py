"""What was changed about one agent."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from toolbelt.control import rights
from toolbelt.core import errors
from toolbelt.web.forms import filters
from toolbelt.web.pages import history
from toolbelt.web.views import answering


@require_safe
def page(request: HttpRequest, agent: str) -> HttpResponse:
    """Show the history, or only its entries to htmx."""
    in_place = answering.is_in_place(request)
    try:
        filled = history.page(
            agent,
            filters.said(filters.History(request.GET)),
            path=request.path,
            here=request.get_full_path(),
            notice=None if in_place else answering.kept(request)[0],
            may_change=rights.may_flip(request.user, agent),
            may_undo=rights.undoable(request.user),
        )
    except errors.NotFound as error:
        raise Http404(str(error)) from error
    shown = {"page": filled, "in_place": in_place}
    return render(request, "agents/_history.html" if in_place else "agents/history.html", shown)
