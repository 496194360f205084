"""Tests the way of a client that knows only an agent's address: to its tools, and until it is revoked."""

from __future__ import annotations

import re
import urllib.parse
from typing import Any

import pytest
from django.test import Client as Browser
from oauth2_provider import models as oauth

from tests import concurrently, fast_fixtures
from tests.front.test_costs import statements as statements
from tests.mcp.conftest import Client, Endpoint, Request
from tests.oauth.conftest import ORIGIN, SignIn, status
from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.people import client_connections, tokens
from toolbelt.runtime import threads


def challenged(endpoint: Endpoint, path: str, **about: Any) -> str:
    """Return the address of the metadata in a 401."""
    answer = endpoint.send(Request(body={}, path=path, **about))
    assert answer.status == 401
    found = re.search(r'resource_metadata="([^"]+)"', answer.headers["www-authenticate"])
    assert found is not None
    return found[1]


@pytest.mark.parametrize(
    "path", ["/mcp/ada", "/mcp/ada/", "/mcp/nobody", "/mcp/ada/s/talk%201", "/mcp/ada/s/talk"]
)
def test_the_metadata_names_exactly_the_address_that_was_asked_for(endpoint: Endpoint, path: str):
    address = challenged(endpoint, urllib.parse.unquote(path))
    assert address == f"{ORIGIN}/.well-known/oauth-protected-resource{path}"
    document = Browser().get(address).json()
    assert document["resource"] == ORIGIN + path
    assert document["authorization_servers"] == [ORIGIN]


def test_the_metadata_of_an_agent_that_does_not_exist_looks_the_same(stored: None):
    real, none = (
        Browser().get(f"/.well-known/oauth-protected-resource/mcp/{agent}") for agent in ("ada", "nobody")
    )
    assert real.content.replace(b"/ada", b"/nobody") == none.content
    assert dict(real.items()).keys() == dict(none.items()).keys()


def test_the_metadata_behind_a_proxy_names_the_public_address(endpoint: Endpoint, settings: Any):
    settings.USE_X_FORWARDED_HOST, settings.ALLOWED_HOSTS = True, ["desk.example"]
    address = challenged(endpoint, "/mcp/ada", scheme="https", headers={"x-forwarded-host": "desk.example"})
    assert address == "https://desk.example/.well-known/oauth-protected-resource/mcp/ada"


def test_the_authorization_server_describes_what_it_accepts(db: None):
    document = Browser().get("/.well-known/oauth-authorization-server").json()
    assert document == {
        "issuer": ORIGIN,
        "authorization_endpoint": f"{ORIGIN}/oauth/authorize",
        "token_endpoint": f"{ORIGIN}/oauth/token",
        "revocation_endpoint": f"{ORIGIN}/oauth/revoke",
        "registration_endpoint": f"{ORIGIN}/oauth/register",
        "response_types_supported": ["code"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": False,
        "scopes_supported": ["tools"],
    }


def test_a_client_signs_in_and_calls_the_agent_s_tools(desk: SignIn, endpoint: Endpoint):
    client = Client(endpoint=endpoint, token=desk.sign_in())
    assert client.names() == Client(endpoint=endpoint, token=desk.tokens["access_token"]).names()
    assert "clock" in client.names()
    assert client.call("clock", {}).result["_meta"]["toolbelt/refusal"]["code"] != "unknown-tool"


def test_the_answer_names_the_state_and_the_issuer(desk: SignIn):
    back = desk.consent()
    assert (back["state"], back["iss"]) == ("s 1", ORIGIN)


def test_a_person_who_is_not_logged_in_logs_in_first(desk: SignIn):
    address = desk.question()
    answer = Browser().get(address)
    assert answer.status_code == 302
    assert answer.headers["Location"] == f"/login/?next={urllib.parse.quote(address)}"


def test_the_question_names_the_client_the_host_and_the_agent(desk: SignIn):
    page = desk.ask().content.decode()
    for text in ("Desk client", "client.example", "ada"):
        assert text in page


def test_the_question_is_asked_again_whatever_the_client_sends(desk: SignIn, endpoint: Endpoint):
    desk.sign_in()
    for extra in ({"approval_prompt": "auto"}, {"prompt": "none"}):
        assert b'name="allow"' in desk.ask(**extra).content


def test_a_refresh_replaces_both_tokens(desk: SignIn, endpoint: Endpoint):
    first = desk.sign_in()
    assert desk.refresh().status_code == 200
    assert status(endpoint, first) == 401
    assert status(endpoint, desk.tokens["access_token"]) == 200


def test_a_used_refresh_token_ends_everything_that_came_from_it(desk: SignIn, endpoint: Endpoint):
    desk.sign_in()
    stolen = desk.tokens["refresh_token"]
    desk.refresh()
    assert status(endpoint, desk.tokens["access_token"]) == 200
    assert desk.refresh(stolen).json()["error"] == "invalid_grant"
    assert status(endpoint, desk.tokens["access_token"]) == 401
    assert desk.refresh().json()["error"] == "invalid_grant"


def test_a_revoked_connection_is_refused_at_the_next_request(desk: SignIn, endpoint: Endpoint):
    token = desk.sign_in()
    client = Client(endpoint=endpoint, token=token)
    assert [client.ask("tools/list").status for _ in range(3)] == [200] * 3
    connection = models.ClientConnection.objects.get()
    code = desk.consent()["code"]
    client_connections.revoke(writing.by("olive", "screen"), connection.pk)
    assert client.ask("tools/list").status == 401
    assert client.call("clock", {}).status == 401
    assert desk.refresh().json()["error"] == "invalid_grant"
    assert desk.exchange(code).json()["error"] == "invalid_grant"
    # Nor does a new one bring the tokens of the old one back.
    refresh_token = desk.tokens["refresh_token"]
    desk.sign_in()
    assert desk.refresh(refresh_token).json()["error"] == "invalid_grant"
    assert status(endpoint, token) == 401


@pytest.mark.parametrize("kind", ["access_token", "refresh_token"])
def test_a_client_revokes_its_own_token(desk: SignIn, endpoint: Endpoint, kind: str):
    token = desk.sign_in()
    assert desk.post("revoke", token=desk.tokens[kind]).status_code == 200
    assert status(endpoint, token) == 401
    assert desk.refresh().json()["error"] == "invalid_grant"


def test_no_text_of_a_token_is_stored(desk: SignIn):
    token = desk.sign_in()
    desk.refresh()
    secret_texts = {token, *desk.tokens.values()}
    rows = [
        str(value)
        for model in (oauth.AccessToken, oauth.RefreshToken, models.ApiToken, models.AuditEntry)
        for row in model._base_manager.values_list()
        for value in row
    ]
    assert rows
    assert not [text for text in secret_texts if isinstance(text, str) and len(text) > 20 and text in rows]


def test_allowing_and_revoking_are_in_the_audit_log(desk: SignIn):
    desk.sign_in()
    connection = models.ClientConnection.objects.get()
    client_connections.revoke(writing.by("adam", "screen"), connection.pk)
    entries = models.AuditEntry.objects.filter(subject_kind="connection").order_by("id")
    described = {
        "agent": "ada",
        "person": "olive",
        "client": "Desk client",
        "redirect_host": "client.example",
    }
    assert [(entry.action, entry.actor, entry.before, entry.after) for entry in entries] == [
        ("connection.allow", "olive", None, described),
        ("connection.revoke", "adam", described, None),
    ]


def test_the_access_log_names_the_agent_and_the_person(desk: SignIn, endpoint: Endpoint):
    from toolbelt.runtime import credentials

    bearer = credentials.recognize(desk.sign_in())
    assert bearer is not None
    assert (bearer.name, bearer.agent, bearer.is_client) == ("agent:ada for olive", "ada", True)


def test_a_denied_question_tells_the_client(desk: SignIn):
    back = desk.consent("deny")
    assert back == {"error": "access_denied", "iss": ORIGIN, "state": "s 1"}
    assert not oauth.Grant.objects.exists()
    assert not models.ClientConnection.objects.exists()


def test_the_page_after_the_answer_leads_back_without_being_a_redirect(desk: SignIn):
    page = fast_fixtures.logged_in(desk.user).post(desk.question(), {"allow": "yes"})
    assert page.status_code == 200
    assert page.headers["Refresh"].startswith("0; url=https://client.example/callback?code=")
    assert "no-store" in page.headers["Cache-Control"]


def test_of_two_requests_with_one_code_one_gets_a_token(desk: SignIn):
    code = desk.consent()["code"]
    answers = concurrently.done([lambda: desk.exchange(code)] * 3)
    assert sorted(answer.status_code for answer in answers) == [200, 400, 400]
    assert models.ApiToken.objects.count() == 1


def test_of_two_requests_with_one_refresh_token_at_most_one_gets_another(desk: SignIn):
    desk.sign_in()
    before = desk.tokens["refresh_token"]
    answers = concurrently.done([lambda: desk.refresh(before)] * 3)
    assert [answer.status_code for answer in answers].count(200) <= 1
    assert models.ApiToken.objects.count() <= 1


def test_a_token_that_leaked_ends_its_connection(desk: SignIn, endpoint: Endpoint):
    token = desk.sign_in()
    tokens.revoke(writing.by("adam", "command"), token)
    assert status(endpoint, token) == 401
    assert desk.refresh().json()["error"] == "invalid_grant"
    assert models.AuditEntry.objects.latest("id").action == "connection.revoke"


def test_a_client_s_list_costs_what_a_token_s_does(
    desk: SignIn, endpoint: Endpoint, statements: list[str], monkeypatch: pytest.MonkeyPatch
):
    costs = []
    for token in (tokens.issue(writing.by("setup", "command"), agent="ada").text, desk.sign_in()):
        request = Client(endpoint=endpoint, token=token).request("tools/list")
        endpoint.send(request, request)
        statements.clear()
        with monkeypatch.context() as patch:
            patch.setattr(threads, "run", None)
            assert endpoint.send(*[request] * 5).status == 200
        costs.append(len(statements))
    assert costs[0] == costs[1] > 0
