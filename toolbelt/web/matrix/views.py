"""The matrix of agents and toolkits."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from toolbelt.control.access import access_index
from toolbelt.control.people import rights
from toolbelt.web.kit import filters, http, responses
from toolbelt.web.matrix import forms, view_model


@require_safe
def page(request: http.Request) -> HttpResponse:
    """Show the matrix, or only its table to htmx."""
    in_place = request.htmx
    filled = view_model.page(
        access_index.load(),
        filters.read(forms.Matrix(request.GET)),
        path=request.path,
        here=request.get_full_path(),
        notice=None if in_place else responses.pop_notice(request)[0],
        may_flip=rights.flip_check(request.user),
    )
    shown = {"page": filled, "in_place": in_place}
    return render(request, "matrix/_table.html" if in_place else "matrix/matrix.html", shown)
