"""Short JSON answers for MCP clients that look for what Toolbelt does not have: OAuth, and the HTTP+SSE transport.

Clients show what they are sent, or read it as JSON: a page for people would help neither.
"""

from __future__ import annotations

from django.contrib.auth import decorators
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.views.decorators import csrf

from toolbelt.mcp import heads, protocol

OAUTH = (
    r"^(?:\.well-known/(?:oauth-protected-resource|oauth-authorization-server|openid-configuration)(?:/.*)?"
    r"|register/?|authorize/?|token/?)$"
)
SSE = r"^sse(?:/.*)?$"


@decorators.login_not_required
@csrf.csrf_exempt
def no_oauth(request: HttpRequest) -> HttpResponse:
    """Answer that there is no OAuth, in the form of an OAuth error, and where a token is made."""
    tokens = request.build_absolute_uri(reverse("web:tokens"))
    return JsonResponse(
        {
            "error": "not_found",
            "error_description": "Toolbelt has no login by OAuth. Send a token of the agent, as"
            f" Authorization: Bearer tb_…. An operator makes one at {tokens}",
        },
        status=404,
    )


@decorators.login_not_required
@csrf.csrf_exempt
def no_sse(request: HttpRequest) -> HttpResponse:
    """Answer that the HTTP+SSE transport is not spoken, and what is."""
    error = {"code": protocol.INVALID_REQUEST, "message": heads.LEGACY_SSE}
    return JsonResponse({"jsonrpc": "2.0", "id": None, "error": error}, status=404)
