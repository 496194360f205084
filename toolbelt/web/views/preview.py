"""What the model of one agent gets, for a question that an operator puts together."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from toolbelt.control import rights
from toolbelt.core import errors
from toolbelt.web.forms import filters
from toolbelt.web.pages import preview
from toolbelt.web.views import answering


@require_safe
def page(request: HttpRequest, agent: str) -> HttpResponse:
    """Show the page; to htmx only what the question comes to."""
    try:
        filled = preview.page(
            agent,
            filters.said(filters.Question(request.GET)),
            path=request.path,
            may_change=rights.may_flip(request.user, agent),
        )
    except errors.NotFound as error:
        raise Http404(str(error)) from error
    template = "agents/_previewed.html" if answering.is_in_place(request) else "agents/preview.html"
    return render(request, template, {"page": filled})
