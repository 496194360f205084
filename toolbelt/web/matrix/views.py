"""The matrix of agents and toolkits."""

from __future__ import annotations

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from toolbelt.control.access import access_index
from toolbelt.control.people import rights
from toolbelt.web.kit import filters, http, responses
from toolbelt.web.matrix import forms, view_model


@require_safe
def page(request: http.Request) -> HttpResponse:
    """Show the matrix, or only its table to htmx."""
    narrowed = filters.read(forms.Matrix(request.GET))
    may_flip = rights.flip_check(request.user)
    shown = view_model.page(access_index.load(), narrowed, path=request.path, may_flip=may_flip)
    return responses.show(request, shown, "matrix/matrix.html", "matrix/_table.html")
