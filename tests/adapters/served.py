"""Toolbelt's own API behind an httpx client, without a socket between."""

from __future__ import annotations

import httpx
from django.test import Client


def answer(request: httpx.Request) -> httpx.Response:
    """Answer a request as the API does, in the connection of the test that asks."""
    said = Client(raise_request_exception=False).generic(
        request.method,
        request.url.raw_path.decode(),
        request.content,
        content_type=request.headers.get("Content-Type", ""),
        headers={"Authorization": request.headers.get("Authorization", "")},
    )
    return httpx.Response(said.status_code, content=said.content, headers=dict(said.headers))


def transport() -> httpx.MockTransport:
    """Return what an httpx client takes in place of a network."""
    return httpx.MockTransport(answer)
