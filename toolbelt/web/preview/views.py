"""What the model of one agent gets, for a question that an operator puts together."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from toolbelt.control.people import rights
from toolbelt.web.kit import filters, http
from toolbelt.web.preview import forms, view_model


@require_safe
def page(request: http.Request, agent: str) -> HttpResponse:
    """Show the page; to htmx only what the question comes to."""
    filled = view_model.page(
        agent,
        filters.read(forms.Question(request.GET)),
        path=request.path,
        may_change=rights.may_flip(request.user, agent),
    )
    template = "preview/_previewed.html" if request.htmx else "preview/preview.html"
    return render(request, template, {"page": filled})
