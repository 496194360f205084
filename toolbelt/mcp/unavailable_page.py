"""The response of servers that cannot provide the MCP endpoint, such as WSGI servers."""

from __future__ import annotations

from django.contrib.auth import decorators
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators import csrf

from toolbelt.mcp import protocol

SENTENCE = (
    "The MCP endpoint requires an ASGI server. Run Toolbelt with uvicorn toolbelt.asgi:application,"
    " not with WSGI or runserver."
)


@decorators.login_not_required
@csrf.csrf_exempt
def page(request: HttpRequest, rest: str = "") -> HttpResponse:
    """Return an error that says how to serve the endpoint."""
    return JsonResponse(
        {"jsonrpc": "2.0", "id": None, "error": {"code": protocol.INTERNAL_ERROR, "message": SENTENCE}},
        status=404,
    )
