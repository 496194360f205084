"""A client for the pages of the documentation that use the HTTP API."""

from __future__ import annotations

from typing import Any

from django.test import Client


class Toolbelt:
    """A client with the interface of httpx, for the application in this process."""

    def __init__(self, token: str) -> None:
        self._client = Client(headers={"Authorization": f"Bearer {token}"})

    def post(self, address: str, *, json: Any) -> Any:
        response: Any = self._client.post(f"/api/v1/agents/ada/{address}", json, "application/json")
        response.raise_for_status = lambda: response
        assert response.status_code in (200, 204), response.content
        return response
