"""JSON error responses for MCP clients that look for OAuth where it is not, or for the HTTP+SSE transport.

Clients show the response or parse it as JSON, so an HTML page would not help.
"""

from __future__ import annotations

from django.contrib.auth import decorators
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.views.decorators import csrf

from toolbelt.mcp import protocol, request_head

OAUTH = (
    r"^(?:\.well-known/(?:oauth-protected-resource|oauth-authorization-server|openid-configuration)(?:/.*)?"
    r"|register/?|authorize/?|token/?)$"
)
SSE = r"^sse(?:/.*)?$"


@decorators.login_not_required
@csrf.csrf_exempt
def nothing_here(request: HttpRequest) -> HttpResponse:
    """Return an OAuth error that says where the metadata is, and where to issue a token."""
    tokens = request.build_absolute_uri(reverse("web:tokens"))
    metadata = request.build_absolute_uri(reverse("oauth2_provider:oauth-server-metadata"))
    return JsonResponse(
        {
            "error": "not_found",
            "error_description": f"Toolbelt's authorization server is described at {metadata}. A client without"
            " OAuth sends the agent's token, as Authorization: Bearer tb_…. An operator can issue one at"
            f" {tokens}",
        },
        status=404,
    )


@decorators.login_not_required
@csrf.csrf_exempt
def no_sse(request: HttpRequest) -> HttpResponse:
    """Return an error that says that HTTP+SSE is not supported, and what to use instead."""
    error = {"code": protocol.INVALID_REQUEST, "message": request_head.LEGACY_SSE}
    return JsonResponse({"jsonrpc": "2.0", "id": None, "error": error}, status=404)
