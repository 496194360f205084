"""Tests that the endpoint follows the transport: its methods, media types, sizes, revisions and addresses."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.mcp.conftest import NEW, OLD, Client, Request, body_of
from toolbelt.mcp import protocol


def sent(client: Client, **changed: Any) -> Any:
    """Send a list request that is otherwise sound."""
    headers = changed.pop("headers", {})
    request = client.request("tools/list")
    return client.endpoint.send(
        dataclasses.replace(request, headers={**request.headers, **headers}, **changed)
    )


@pytest.mark.parametrize(
    "path", ["/mcp/ada", "/mcp/ada/", "/mcp/ada/s/s1", "/mcp/ada/s/s1/", "/mcp/ada/s/a b/c"]
)
def test_an_agent_and_its_sessions_have_addresses_with_and_without_a_slash(client: Client, path: str):
    assert sent(client, path=path).status == 200


@pytest.mark.parametrize(
    "path", ["/mcp", "/mcp/", "/mcp/ada/x", "/mcp/a:b", "/mcp/ada/s/", f"/mcp/ada/s/{'x' * 201}"]
)
def test_other_addresses_lead_nowhere(client: Client, path: str):
    assert sent(client, path=path).told == (404, protocol.INVALID_REQUEST)


@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS", "HEAD"])
def test_other_methods_are_not_done_here(client: Client, method: str):
    answer = sent(client, method=method)
    assert answer.status == 405
    assert answer.headers["allow"] == "GET, POST"


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_the_second_era_only_posts(new: Client, method: str):
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
def test_a_client_takes_json(client: Client, accept: str | None, status: int):
    assert sent(client, headers={"accept": accept}).status == status


def test_a_stream_is_for_clients_that_take_events(old: Client, new: Client):
    assert old.endpoint.send(old.stream(accept="application/json")).status == 406
    wanted = {"notifications": {"toolsListChanged": True}}
    assert new.ask("subscriptions/listen", wanted, accept="application/json").status == 406


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", None, "application/jsonp"]
)
def test_a_body_is_json(client: Client, kind: str | None):
    assert sent(client, headers={"content-type": kind}).status == 415


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff", b'{"a": 1, "a": 2}', b"[" * 100 + b"]" * 100, b'{"id": NaN}']
)
def test_what_is_no_json_is_a_parse_error(client: Client, body: bytes):
    answer = sent(client, body=body)
    assert answer.told == (400, protocol.PARSE_ERROR)
    assert answer.json()["id"] is None


@pytest.mark.parametrize("is_announced", [True, False])
def test_a_body_that_is_too_large_is_not_read(client: Client, settings: Any, is_announced: bool):
    settings.TOOLBELT_API_BODY_BYTES = 1000
    endpoint = type(client.endpoint)(client.endpoint.answers)
    request = client.request("tools/list", {"text": "x" * 1000})
    if not is_announced:
        headers = {**request.headers, "content-length": None, "transfer-encoding": "chunked"}
        request = dataclasses.replace(request, headers=headers)
    assert endpoint.send(request).status == 413


def test_a_batch_is_refused(client: Client):
    assert sent(client, body=[body_of("tools/list")]).told == (400, protocol.INVALID_REQUEST)


def test_a_method_that_is_not_there_is_not_found(old: Client, new: Client):
    assert old.ask("tasks/list").told == (200, protocol.METHOD_NOT_FOUND)
    assert new.ask("tasks/list").told == (404, protocol.METHOD_NOT_FOUND)
    # Each era has its own.
    assert old.ask("server/discover").told == (200, protocol.METHOD_NOT_FOUND)
    assert new.ask("initialize").told == (404, protocol.METHOD_NOT_FOUND)
    assert new.ask("ping").told == (404, protocol.METHOD_NOT_FOUND)


def test_a_ping_is_answered_with_nothing(old: Client):
    assert old.ask("ping").result == {}


@pytest.mark.parametrize(
    "method", ["notifications/initialized", "notifications/cancelled", "notifications/whatever"]
)
def test_notifications_are_taken_and_not_answered(client: Client, method: str):
    answer = client.endpoint.send(client.request(method, id_=None))
    assert (answer.status, answer.body) == (202, b"")


def test_an_answer_to_what_nobody_asked_is_taken(old: Client):
    assert sent(old, body={"jsonrpc": "2.0", "id": 1, "result": {}}).status == 202


def test_headers_that_contradict_the_request_are_a_mismatch(new: Client):
    assert new.ask("tools/list", mcp_method="tools/call").told == (400, protocol.HEADER_MISMATCH)
    assert new.call("clock", mcp_name="cloth").told == (400, protocol.HEADER_MISMATCH)
    assert new.ask("tools/list", mcp_protocol_version=OLD).told == (400, protocol.HEADER_MISMATCH)


def test_a_revision_that_is_not_spoken_is_told_those_that_are(old: Client):
    answer = old.ask("tools/list", mcp_protocol_version="2024-11-05")
    assert answer.told == (400, protocol.UNSUPPORTED_VERSION)
    assert answer.error["data"]["requested"] == "2024-11-05"


@pytest.mark.parametrize("session", ["", "whatever", "tb.x.y"])
def test_nothing_depends_on_the_id_of_a_session(old: Client, session: str):
    client = dataclasses.replace(old, session=session)
    assert client.names() == ["call_tool", "clock", "search_tools"]
    gone = Request(method="DELETE", token=old.token, headers={"mcp-session-id": session or None})
    assert client.endpoint.send(gone).status == 405
    assert client.names() == ["call_tool", "clock", "search_tools"]


def test_an_answer_over_https_says_to_stay_there(client: Client, settings: Any):
    settings.SECURE_HSTS_SECONDS = 60
    endpoint = type(client.endpoint)(client.endpoint.answers)
    request = client.request("tools/list")
    assert endpoint.send(dataclasses.replace(request, scheme="https")).headers["strict-transport-security"]
    assert "strict-transport-security" not in endpoint.send(request).headers


def test_plain_http_is_led_to_https_where_everyone_is(client: Client, settings: Any):
    settings.SECURE_SSL_REDIRECT = True
    answer = type(client.endpoint)(client.endpoint.answers).send(client.request("tools/list"))
    assert (answer.status, answer.headers["location"]) == (301, "https://testserver/mcp/ada")


def test_what_goes_wrong_here_is_logged_and_told_without_the_why(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: Any
):
    from toolbelt.mcp import list_changes

    def fail(*about: Any) -> None:
        raise ValueError("s3cret")

    monkeypatch.setattr(list_changes.ListChangeTracker, "record", fail)
    answer = sent(dataclasses.replace(client, path=f"{client.path}/s/{client.token}"))
    assert answer.told == (500, protocol.INTERNAL_ERROR)
    assert b"s3cret" not in answer.body
    assert "MCP request failed" in caplog.text
    assert client.token not in caplog.text


def test_requests_are_counted_and_logged_like_all_others(client: Client, caplog: Any):
    with caplog.at_level("INFO", "django_structlog.middlewares.request"):
        answer = sent(client)
    said = [record.msg for record in caplog.records if record.name == "django_structlog.middlewares.request"]
    assert [(one["request"], one["code"], one["bearer"]) for one in said] == [
        ("POST /mcp/ada", 200, "agent:ada")
    ]
    assert said[0]["request_id"] == answer.headers["x-request-id"]
