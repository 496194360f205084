"""The matrix of agents and toolkits."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from toolbelt.control import holdings, rights
from toolbelt.web.forms import filters
from toolbelt.web.pages import matrix
from toolbelt.web.views import answering


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Show the matrix, or only its table to htmx."""
    in_place = answering.is_in_place(request)
    filled = matrix.page(
        holdings.every(),
        filters.said(filters.Matrix(request.GET)),
        path=request.path,
        here=request.get_full_path(),
        notice=None if in_place else answering.kept(request)[0],
        may_flip=rights.flippable(request.user),
    )
    shown = {"page": filled, "in_place": in_place}
    return render(request, "matrix/_table.html" if in_place else "matrix/matrix.html", shown)
