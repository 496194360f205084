"""The login page, with why a person was not logged in by the provider."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render

from toolbelt.web.kit import http


def show(request: http.Request, text: str, status: int) -> HttpResponse:
    """Return the page."""
    return render(request, "login.html", {"refusal": text}, status=status)
