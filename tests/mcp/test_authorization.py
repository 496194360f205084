"""Tests which tokens the MCP endpoint accepts: the agent's own, and operators' as far as the API accepts them."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.utils import timezone

from tests.api.conftest import SETUP, of_operator
from tests.mcp.conftest import NEW, OLD, Client, Endpoint, Request
from toolbelt.control.agents import agents
from toolbelt.control.people import roles, tokens
from toolbelt.mcp import protocol
from toolbelt.store import clock

RESOURCES = ["resources/list", "resources/templates/list", "resources/read"]
METHODS = [
    *("ping", "tools/list", "tools/call", "initialize", "notifications/initialized", "GET", "DELETE"),
    *(*RESOURCES, "resources/subscribe", "resources/unsubscribe"),
]
MODERN = [
    *("tools/list", "tools/call", "server/discover", "subscriptions/listen", "notifications/cancelled"),
    *RESOURCES,
]
EVERY = [(OLD, method) for method in METHODS] + [(NEW, method) for method in MODERN]


def request_of_kind(client: Client, method: str) -> Request:
    """Return a valid request of this kind with the client's token."""
    if method == "GET":
        return client.stream()
    if method == "DELETE":
        return Request(method="DELETE", path=client.path, token=client.token)
    params: dict[str, Any] = {"name": "clock"} if method == "tools/call" else {}
    if method in ("resources/read", "resources/subscribe", "resources/unsubscribe"):
        params = {"uri": "toolbelt://policy"}
    if method == "subscriptions/listen":
        params = {"notifications": {"toolsListChanged": True}}
    return client.request(method, params, id_=None if method.startswith("notifications") else 1)


METADATA = 'resource_metadata="http://testserver/.well-known/oauth-protected-resource/mcp/ada"'
INVALID = {(401, f'Bearer realm="toolbelt", error="invalid_token", {METADATA}')}


def responses_to_every_method(endpoint: Endpoint, token: str, path: str = "/mcp/ada") -> set[tuple[int, str]]:
    """Return the statuses and challenges that all kinds of requests get with this token."""
    responses = set()
    for version, method in EVERY:
        answer = endpoint.send(
            request_of_kind(Client(endpoint=endpoint, token=token, version=version, path=path), method)
        )
        responses.add((answer.status, answer.headers.get("www-authenticate", "")))
        assert answer.error["code"] == protocol.INVALID_REQUEST, (version, method)
    return responses


def test_every_method_requires_a_token(endpoint: Endpoint):
    assert responses_to_every_method(endpoint, "") == {(401, f'Bearer realm="toolbelt", {METADATA}')}


def test_malformed_unknown_revoked_and_expired_tokens_are_refused(endpoint: Endpoint, ada: str):
    assert responses_to_every_method(endpoint, "tb_nonsense") == INVALID
    assert (
        responses_to_every_method(endpoint, "tb_0nj8sPWpAgTCvxZ4sXCjdqLrGzZvcRDm2m5Ux1kiTYf8XbXnfAM1K0bWqt1k")
        == INVALID
    )
    revoked = tokens.issue(SETUP, agent="ada")
    tokens.revoke(SETUP, revoked.token.prefix)
    assert responses_to_every_method(endpoint, revoked.text) == INVALID
    expired = tokens.issue(SETUP, agent="ada", expires=timezone.now() + dt.timedelta(days=1)).text
    with clock.stopped(timezone.now() + dt.timedelta(days=2)):
        assert responses_to_every_method(endpoint, expired) == INVALID


def test_another_agent_is_not_found_whether_or_not_it_exists(endpoint: Endpoint, ada: str):
    assert responses_to_every_method(endpoint, ada, "/mcp/bob") == {(404, "")}
    assert responses_to_every_method(endpoint, ada, "/mcp/nobody") == {(404, "")}
    errors = [
        endpoint.send(
            request_of_kind(Client(endpoint=endpoint, token=ada, path=f"/mcp/{agent}"), "tools/list")
        ).error
        for agent in ("bob", "nobody")
    ]
    assert errors[0]["message"].replace("bob", "nobody") == errors[1]["message"]
    assert errors[1]["message"] == "There is no agent named 'nobody', or this token belongs to another agent."


def test_a_read_only_operator_can_list_but_not_call(endpoint: Endpoint, reader: str):
    for version in (OLD, NEW):
        client = Client(endpoint=endpoint, token=reader, version=version)
        assert "clock" in client.names()
        refused = client.call("clock", {})
        assert refused.status == 403
        assert "insufficient_scope" in refused.headers["www-authenticate"]
        assert "is read-only" in refused.error["message"]


def test_an_operator_needs_permission_to_change_agents_to_call(endpoint: Endpoint):
    allowed = Client(endpoint=endpoint, token=of_operator("olga", "change_agent"))
    forbidden = Client(endpoint=endpoint, token=of_operator("otto"))
    assert allowed.call("clock", {}).status == 200
    assert forbidden.call("clock", {}).status == 403


def test_an_unknown_agent_is_reported_to_an_operator(endpoint: Endpoint, reader: str):
    client = Client(endpoint=endpoint, token=reader, path="/mcp/adda")
    assert client.ask("tools/list").status_and_code == (404, protocol.INVALID_REQUEST)
    assert "ada" in client.ask("tools/list").error["message"]


def test_a_revoked_token_is_refused_immediately(client: Client):
    request = client.request("tools/list")
    client.endpoint.send(request, request, request)
    tokens.revoke(SETUP, client.token[:11])
    assert client.ask("tools/list").status == 401


@pytest.mark.parametrize("host", ["evil.example", "", "testserver.evil.example"])
def test_a_request_for_another_host_is_refused(client: Client, host: str):
    assert client.endpoint.send(client.request("tools/list", host=host)).status == 421


def test_requests_from_untrusted_origins_are_refused(client: Client, settings: Any):
    settings.CSRF_TRUSTED_ORIGINS = ["https://desk.example", "https://*.friends.example"]
    statuses = {
        origin: client.endpoint.send(client.request("tools/list", origin=origin)).status
        for origin in (
            "http://testserver",
            "https://desk.example",
            "https://a.friends.example",
            "https://testserver",
            "http://desk.example",
            "https://friends.example.evil.example",
            "https://evil.example",
            "http://[",
            "null",
        )
    }
    assert statuses == {
        "http://testserver": 200,
        "https://desk.example": 200,
        "https://a.friends.example": 200,
        "https://testserver": 403,
        "http://desk.example": 403,
        "https://friends.example.evil.example": 403,
        "https://evil.example": 403,
        "http://[": 403,
        "null": 403,
    }


def test_a_client_over_the_rate_limit_gets_a_retry_after(stored: None, ada: str, settings: Any):
    from toolbelt.runtime.surfaces import prepared_answers

    settings.TOOLBELT_API_PER_MINUTE = 2
    client = Client(endpoint=Endpoint(prepared_answers.answers()), token=ada)
    request = client.request("tools/list")
    answer = client.endpoint.send(request, request, request)
    assert answer.status == 429
    assert int(answer.headers["retry-after"]) > 0


def test_an_archived_agent_is_refused_until_it_is_restored(endpoint: Endpoint, ada: str):
    token = of_operator("olga", superuser=True)
    assert Client(endpoint=endpoint, token=ada).ask("tools/list").status == 200
    agents.archive(SETUP.replace(confirm=True), "ada", True)
    assert responses_to_every_method(endpoint, ada) == INVALID
    for method in ("tools/list", "tools/call"):
        client = Client(endpoint=endpoint, token=token)
        answer = endpoint.send(request_of_kind(client, method))
        assert answer.status == 404, answer
    agents.archive(SETUP, "ada", False)
    assert Client(endpoint=endpoint, token=ada).ask("tools/list").status == 200


def test_an_operator_of_one_agent_can_call_only_as_that_agent(endpoint: Endpoint, ada: str):
    token = of_operator("anna")
    client = Client(endpoint=endpoint, token=token)
    assert endpoint.send(request_of_kind(client, "tools/call")).status == 403
    roles.set_operators(SETUP, "ada", ["anna"])
    assert endpoint.send(request_of_kind(client, "tools/call")).status == 200
    roles.set_operators(SETUP, "ada", [])
    roles.set_operators(SETUP, "bob", ["anna"])
    assert endpoint.send(request_of_kind(client, "tools/call")).status == 403
