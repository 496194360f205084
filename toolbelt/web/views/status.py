"""The page about the installation, for those who administer it."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from toolbelt.web.pages import status


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Show the page to staff, as the metrics and the admin are: what runs here is nobody else's to know."""
    if not getattr(request.user, "is_staff", False):
        raise PermissionDenied
    return render(request, "status/status.html", {"page": status.page()})
