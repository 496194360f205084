"""The endpoints for tokens: from a code or a refresh token to new ones, and their revocation (RFC 6749, RFC 7009)."""

from __future__ import annotations

import json
from typing import Any

from django.contrib.auth import decorators
from django.http import HttpRequest, HttpResponse
from django.views.decorators import csrf
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST
from oauth2_provider import models as oauth
from oauth2_provider.views import mixins

from toolbelt.control.people import sign_in_attempts
from toolbelt.core import agent_addresses
from toolbelt.oauth import registration


@decorators.login_not_required
@csrf.csrf_exempt
@require_POST
@sensitive_post_parameters("code", "code_verifier", "refresh_token")
def issue(request: HttpRequest) -> HttpResponse:
    """Return an access token and a refresh token, or why not. How far the client came is recorded."""
    if registration.has_nul(request):
        return registration.refusal("invalid_request", "A parameter contains NUL.")
    core = mixins.OAuthLibMixin.get_oauthlib_core()
    try:
        _, headers, body, status = core.create_token_response(request)
    except oauth.Grant.DoesNotExist:
        # Another request has used the code up since the library found it.
        return registration.refusal("invalid_grant", "The code was used.")
    _record(request, json.loads(body), status)
    return _response(headers, body, status)


@decorators.login_not_required
@csrf.csrf_exempt
@require_POST
@sensitive_post_parameters("token")
def revoke(request: HttpRequest) -> HttpResponse:
    """Revoke a token at the wish of its client, with everything that comes from the same sign-in."""
    if registration.has_nul(request):
        return registration.refusal("invalid_request", "A parameter contains NUL.")
    _, headers, body, status = mixins.OAuthLibMixin.get_oauthlib_core().create_revocation_response(request)
    return _response(headers, body, status)


def _response(headers: dict[str, str], body: str | None, status: int) -> HttpResponse:
    headers = {"Content-Type": "application/json", "Cache-Control": "no-store", **headers}
    return HttpResponse(body or "", status=status, headers=headers)


def _record(request: HttpRequest, document: dict[str, Any], status: int) -> None:
    application = oauth.Application.objects.filter(client_id=request.POST.get("client_id", "")).first()
    if application is None:
        return
    if status != 200:
        grant = request.POST.get("grant_type", "")[:40]
        sign_in_attempts.failed(
            application.pk,
            agent_addresses.agent_of_any_host(request.POST.get("resource", "")),
            f"POST {request.path} ({grant})",
            document.get("error", ""),
            document.get("error_description", ""),
        )
        return
    token = oauth.AccessToken.objects.filter(application=application).order_by("-pk").first()
    if token is not None and token.resource:
        agent = agent_addresses.agent_of_any_host(token.resource[0])
        sign_in_attempts.reached(application.pk, agent, "token")
