"""Tests that, without the ASGI application, the MCP address explains what to run."""

from __future__ import annotations

from django.test import Client


def test_django_alone_refers_to_an_asgi_server() -> None:
    for address in ("/mcp", "/mcp/ada", "/mcp/ada/s/s1"):
        for answer in (Client(enforce_csrf_checks=True).post(address), Client().get(address)):
            assert answer.status_code == 404
            assert "uvicorn toolbelt.asgi:application" in answer.json()["error"]["message"]
