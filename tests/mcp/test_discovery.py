"""Tests that MCP clients that look for OAuth, or for the earlier SSE transport, get an explanation in JSON."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from django.test import Client as Browser

from tests.mcp.conftest import Client, Endpoint, Request, run
from toolbelt.mcp import protocol

PROBES = [
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-protected-resource/mcp/",
    "/.well-known/oauth-protected-resource/mcp/ada/other",
    "/.well-known/oauth-protected-resource/api/v1",
    "/.well-known/oauth-authorization-server/mcp/ada",
    "/.well-known/openid-configuration",
    "/.well-known/openid-configuration/mcp/ada",
    "/register",
    "/authorize",
    "/token",
]


@pytest.mark.parametrize("path", PROBES)
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_a_probe_where_there_is_no_metadata_gets_a_short_answer_with_the_way_on(
    path: str, method: str
) -> None:
    answer = Browser(enforce_csrf_checks=True).generic(method, path)
    assert (answer.status_code, answer.headers["Content-Type"]) == (404, "application/json")
    assert len(answer.content) < 400
    assert answer.json()["error"] == "not_found"
    for address in ("/tokens/", "/.well-known/oauth-authorization-server"):
        assert f"http://testserver{address}" in answer.json()["error_description"]


@pytest.mark.parametrize(
    "path", ["/mcp/.well-known/openid-configuration", "/mcp/ada/.well-known/x", "/mcp/register"]
)
def test_an_oauth_probe_below_an_agent_s_address_is_answered_in_json(endpoint: Endpoint, path: str) -> None:
    answer = endpoint.send(Request(method="GET", path=path, headers={"accept": "application/json"}))
    assert answer.status in (401, 404)
    assert answer.error["code"] == protocol.INVALID_REQUEST


def test_a_missing_token_error_names_the_page_where_tokens_are_issued(endpoint: Endpoint) -> None:
    for token in ("", "tb_nonsense", "tb_0nj8sPWpAgTCvxZ4sXCjdqLrGzZvcRDm2m5Ux1kiTYf8XbXnfAM1K0bWqt1k"):
        client = Client(endpoint=endpoint, token=token)
        message = client.ask("tools/list").error["message"]
        assert message.startswith("Toolbelt requires a token of this agent")
        assert message.endswith(" An operator can issue one at http://testserver/tokens/?agent=ada#issue")


def test_the_address_of_tokens_uses_the_forwarded_host(endpoint: Endpoint, settings: Any) -> None:
    settings.USE_X_FORWARDED_HOST, settings.ALLOWED_HOSTS = True, ["desk.example"]
    client = Client(endpoint=endpoint, token="")
    request = client.request("tools/list", x_forwarded_host="desk.example")
    message = endpoint.send(dataclasses.replace(request, scheme="https")).error["message"]
    assert message.endswith(" https://desk.example/tokens/?agent=ada#issue")


@pytest.mark.parametrize("path", ["/mcp/ada", "/mcp/ada/s/s1"])
def test_a_client_of_the_sse_transport_is_referred_to_streamable_http(old: Client, path: str) -> None:
    stream_request = Request(
        method="GET", path=path, token=old.token, headers={"accept": "text/event-stream"}
    )
    for request in (stream_request, dataclasses.replace(stream_request, token="")):
        answer = old.endpoint.send(request)
        assert (answer.status, answer.headers["content-type"]) == (405, "application/json")
        assert "Streamable HTTP" in answer.error["message"]


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("path", ["/sse", "/sse/", "/sse/ada"])
def test_the_address_of_the_sse_transport_refers_to_streamable_http(path: str, method: str) -> None:
    answer = Browser(enforce_csrf_checks=True).generic(method, path, headers={"Accept": "text/event-stream"})
    assert (answer.status_code, answer.headers["Content-Type"]) == (404, "application/json")
    assert "Streamable HTTP" in answer.json()["error"]["message"]


@pytest.mark.parametrize("header", ["mcp_protocol_version", "mcp_session_id", "last_event_id"])
def test_any_header_of_streamable_http_opens_a_stream(old: Client, header: str) -> None:
    sent = {"mcp_protocol_version": None, header: "2025-06-18"}

    async def main() -> int:
        async with old.endpoint.serving(), old.endpoint.open(old.stream(**sent)) as stream:
            return (await stream.started())[0]

    assert run(main) == 200
