"""Toolbelt's own API behind an httpx client, without a socket."""

from __future__ import annotations

import httpx
from django.test import Client


def answer(request: httpx.Request) -> httpx.Response:
    """Answer a request as the API does, with the database connection of the test."""
    response = Client(raise_request_exception=False).generic(
        request.method,
        request.url.raw_path.decode(),
        request.content,
        content_type=request.headers.get("Content-Type", ""),
        headers={"Authorization": request.headers.get("Authorization", "")},
    )
    return httpx.Response(response.status_code, content=response.content, headers=dict(response.headers))


def transport() -> httpx.MockTransport:
    """Return a transport for an httpx client that answers without a network."""
    return httpx.MockTransport(answer)
