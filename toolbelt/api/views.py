"""Where is the API documented? On a page of its own, and in the OpenAPI document that the page is made from.

Both are for whoever may come in here at all: with a login, to read, or with a token.
"""

from __future__ import annotations

from django.contrib.auth import decorators
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from toolbelt.api import application, auth, problems, reference


@decorators.login_not_required
@require_safe
def document(request: HttpRequest) -> HttpResponse:
    """Give the OpenAPI document."""
    refusal = _refusal(request)
    if refusal is not None:
        return refusal
    return JsonResponse(application.api.get_openapi_schema(path_prefix=reference.PREFIX))


@decorators.login_not_required
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Show what the API takes and answers."""
    refusal = _refusal(request)
    if refusal is not None:
        # A browser sends no token: it is led to the login.
        asked_with_token = "Authorization" in request.headers
        return refusal if asked_with_token else redirect_to_login(request.get_full_path())
    return render(request, "api/reference.html", {"reference": reference.read()})


def _refusal(request: HttpRequest) -> HttpResponse | None:
    """Answer whoever is neither logged in nor has a token; None for all others."""
    if request.user.is_authenticated:
        return None
    try:
        auth.recognized(request)
    except problems.HttpProblem as problem:
        return problems.answer(problem)
    return None
