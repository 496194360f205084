"""The help page. The rules come from the core, and all other texts from the templates."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from toolbelt.core import rules
from toolbelt.web.kit import http


@require_safe
def page(request: http.Request) -> HttpResponse:
    """Show the page, which is the same for everyone."""
    return render(request, "help/help.html", {"page": {"rules": rules.RULES}})
