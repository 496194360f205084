"""The API's documentation: the OpenAPI document, and the HTML page that is generated from it.

Both require a login or a token.
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
    """Return the OpenAPI document."""
    error_response = _authentication_error(request)
    if error_response is not None:
        return error_response
    return JsonResponse(application.api.get_openapi_schema(path_prefix=reference.PREFIX))


@decorators.login_not_required
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Show the API reference."""
    error_response = _authentication_error(request)
    if error_response is not None:
        # A browser sends no token: redirect it to the login page.
        has_token = "Authorization" in request.headers
        return error_response if has_token else redirect_to_login(request.get_full_path())
    return render(request, "api/reference.html", {"reference": reference.read()})


def _authentication_error(request: HttpRequest) -> HttpResponse | None:
    """Return an error response if the request has neither a login nor a valid token, else None."""
    if request.user.is_authenticated:
        return None
    try:
        auth.authenticate(request)
    except problems.HttpProblem as problem:
        return problems.to_response(problem)
    return None
