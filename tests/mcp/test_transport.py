"""Tests that the endpoint follows the transport: its methods, media types, sizes, revisions and addresses."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.mcp.conftest import NEW, OLD, Client, Request, body_of
from toolbelt.mcp import protocol


def send(client: Client, **changed: Any) -> Any:
    """Send a list request with these changes."""
    headers = changed.pop("headers", {})
    request = client.request("tools/list")
    return client.endpoint.send(
        dataclasses.replace(request, headers={**request.headers, **headers}, **changed)
    )


@pytest.mark.parametrize(
    "path", ["/mcp/ada", "/mcp/ada/", "/mcp/ada/s/s1", "/mcp/ada/s/s1/", "/mcp/ada/s/a b/c"]
)
def test_addresses_of_agents_and_sessions_work_with_and_without_a_slash(client: Client, path: str):
    assert send(client, path=path).status == 200


@pytest.mark.parametrize(
    "path", ["/mcp", "/mcp/", "/mcp/ada/x", "/mcp/a:b", "/mcp/ada/s/", f"/mcp/ada/s/{'x' * 201}"]
)
def test_other_addresses_are_not_found(client: Client, path: str):
    assert send(client, path=path).status_and_code == (404, protocol.INVALID_REQUEST)


@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS", "HEAD"])
def test_other_http_methods_are_refused(client: Client, method: str):
    answer = send(client, method=method)
    assert answer.status == 405
    assert answer.headers["allow"] == "GET, POST"


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_the_second_era_allows_only_post(new: Client, method: str):
    answer = new.endpoint.send(
        Request(
            method=method,
            token=new.token,
            headers={"mcp-protocol-version": NEW, "accept": "text/event-stream"},
        )
    )
    assert answer.status == 405
    assert answer.headers["allow"] == "POST"


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("application/json, text/event-stream", 200),
        ("application/json", 200),
        ("*/*", 200),
        ("application/*;q=0.5, text/*", 200),
        (None, 200),
        ("text/event-stream", 406),
        ("text/html", 406),
    ],
)
def test_the_accept_header_must_allow_json(client: Client, accept: str | None, status: int):
    assert send(client, headers={"accept": accept}).status == status


def test_a_stream_requires_accepting_event_streams(old: Client, new: Client):
    assert old.endpoint.send(old.stream(accept="application/json")).status == 406
    params = {"notifications": {"toolsListChanged": True}}
    assert new.ask("subscriptions/listen", params, accept="application/json").status == 406


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", None, "application/jsonp"]
)
def test_the_content_type_must_be_json(client: Client, kind: str | None):
    assert send(client, headers={"content-type": kind}).status == 415


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff", b'{"a": 1, "a": 2}', b"[" * 100 + b"]" * 100, b'{"id": NaN}']
)
def test_invalid_json_is_a_parse_error(client: Client, body: bytes):
    answer = send(client, body=body)
    assert answer.status_and_code == (400, protocol.PARSE_ERROR)
    assert answer.json()["id"] is None


@pytest.mark.parametrize("is_announced", [True, False])
def test_too_large_a_body_is_refused(client: Client, settings: Any, is_announced: bool):
    settings.TOOLBELT_API_BODY_BYTES = 1000
    endpoint = type(client.endpoint)(client.endpoint.answers)
    request = client.request("tools/list", {"text": "x" * 1000})
    if not is_announced:
        headers = {**request.headers, "content-length": None, "transfer-encoding": "chunked"}
        request = dataclasses.replace(request, headers=headers)
    assert endpoint.send(request).status == 413


def test_a_batch_is_refused(client: Client):
    assert send(client, body=[body_of("tools/list")]).status_and_code == (400, protocol.INVALID_REQUEST)


def test_an_unknown_method_is_not_found(old: Client, new: Client):
    assert old.ask("tasks/list").status_and_code == (200, protocol.METHOD_NOT_FOUND)
    assert new.ask("tasks/list").status_and_code == (404, protocol.METHOD_NOT_FOUND)
    # Each era has its own methods.
    assert old.ask("server/discover").status_and_code == (200, protocol.METHOD_NOT_FOUND)
    assert new.ask("initialize").status_and_code == (404, protocol.METHOD_NOT_FOUND)
    assert new.ask("ping").status_and_code == (404, protocol.METHOD_NOT_FOUND)


def test_a_ping_gets_an_empty_result(old: Client):
    assert old.ask("ping").result == {}


@pytest.mark.parametrize(
    "method", ["notifications/initialized", "notifications/cancelled", "notifications/whatever"]
)
def test_notifications_are_accepted_without_a_response(client: Client, method: str):
    answer = client.endpoint.send(client.request(method, id_=None))
    assert (answer.status, answer.body) == (202, b"")


def test_an_unrequested_response_is_accepted(old: Client):
    assert send(old, body={"jsonrpc": "2.0", "id": 1, "result": {}}).status == 202


def test_headers_that_contradict_the_request_are_a_mismatch(new: Client):
    assert new.ask("tools/list", mcp_method="tools/call").status_and_code == (400, protocol.HEADER_MISMATCH)
    assert new.call("clock", mcp_name="cloth").status_and_code == (400, protocol.HEADER_MISMATCH)
    assert new.ask("tools/list", mcp_protocol_version=OLD).status_and_code == (400, protocol.HEADER_MISMATCH)


def test_an_unsupported_revision_is_refused(old: Client):
    answer = old.ask("tools/list", mcp_protocol_version="2024-11-05")
    assert answer.status_and_code == (400, protocol.UNSUPPORTED_VERSION)
    assert answer.error["data"]["requested"] == "2024-11-05"


@pytest.mark.parametrize("session", ["", "whatever", "tb.x.y"])
def test_lists_do_not_depend_on_the_session_id(old: Client, session: str):
    client = dataclasses.replace(old, session=session)
    assert client.names() == ["call_tool", "clock", "search_tools"]
    gone = Request(method="DELETE", token=old.token, headers={"mcp-session-id": session or None})
    assert client.endpoint.send(gone).status == 405
    assert client.names() == ["call_tool", "clock", "search_tools"]


def test_a_response_over_https_has_the_hsts_header(client: Client, settings: Any):
    settings.SECURE_HSTS_SECONDS = 60
    endpoint = type(client.endpoint)(client.endpoint.answers)
    request = client.request("tools/list")
    assert endpoint.send(dataclasses.replace(request, scheme="https")).headers["strict-transport-security"]
    assert "strict-transport-security" not in endpoint.send(request).headers


def test_plain_http_is_redirected_if_https_is_required(client: Client, settings: Any):
    settings.SECURE_SSL_REDIRECT = True
    answer = type(client.endpoint)(client.endpoint.answers).send(client.request("tools/list"))
    assert (answer.status, answer.headers["location"]) == (301, "https://testserver/mcp/ada")


def test_an_internal_error_is_logged_and_returned_without_details(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: Any
):
    from toolbelt.mcp import list_changes

    def fail(*about: Any) -> None:
        raise ValueError("s3cret")

    monkeypatch.setattr(list_changes.ListChangeTracker, "record", fail)
    answer = send(dataclasses.replace(client, path=f"{client.path}/s/{client.token}"))
    assert answer.status_and_code == (500, protocol.INTERNAL_ERROR)
    assert b"s3cret" not in answer.body
    assert "MCP request failed" in caplog.text
    assert client.token not in caplog.text


def test_requests_are_logged_like_all_others(client: Client, caplog: Any):
    with caplog.at_level("INFO", "django_structlog.middlewares.request"):
        answer = send(client)
    entries = [
        record.msg for record in caplog.records if record.name == "django_structlog.middlewares.request"
    ]
    assert [(entry["request"], entry["code"], entry["bearer"]) for entry in entries] == [
        ("POST /mcp/ada", 200, "agent:ada")
    ]
    assert entries[0]["request_id"] == answer.headers["x-request-id"]
