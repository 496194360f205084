"""The help page."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from toolbelt.web.help import view_model
from toolbelt.web.kit import http


@require_safe
def page(request: http.Request) -> HttpResponse:
    """Show the page."""
    return render(request, "help/help.html", {"page": view_model.page()})
