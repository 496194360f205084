"""What stands on the pages, explained."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from toolbelt.web.pages import help as pages


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Show the page."""
    return render(request, "help/help.html", {"page": pages.page()})
