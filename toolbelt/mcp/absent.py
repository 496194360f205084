"""What is said where the endpoint is not? One sentence, under a server that cannot have it."""

from __future__ import annotations

from django.contrib.auth import decorators
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators import csrf

from toolbelt.mcp import protocol

SENTENCE = (
    "MCP clients are answered by an ASGI server alone: run Toolbelt by uvicorn toolbelt.asgi:application,"
    " not by WSGI or runserver."
)


@decorators.login_not_required
@csrf.csrf_exempt
def page(request: HttpRequest, rest: str = "") -> HttpResponse:
    """Say where the endpoint is to be had."""
    return JsonResponse(
        {"jsonrpc": "2.0", "id": None, "error": {"code": protocol.INTERNAL_ERROR, "message": SENTENCE}},
        status=404,
    )
