"""The page about the installation, for those who administer it."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from toolbelt.web.kit import http
from toolbelt.web.status import view_model


@require_safe
def page(request: http.Request) -> HttpResponse:
    """Show the page to staff only, as the metrics and the admin are."""
    if not getattr(request.user, "is_staff", False):
        raise PermissionDenied
    return render(request, "status/status.html", {"page": view_model.page()})
