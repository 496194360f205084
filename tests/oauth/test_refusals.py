"""Tests what the authorization server and the endpoint refuse."""

from __future__ import annotations

import datetime as dt
import urllib.parse
from typing import Any

import pytest
from django.test import Client as Browser
from django.utils import timezone
from oauth2_provider import models as oauth

from tests import fast_fixtures
from tests.api.conftest import SETUP
from tests.mcp.conftest import Client, Endpoint
from tests.oauth.conftest import ORIGIN, SignIn, came_back, person, status
from toolbelt import models
from toolbelt.api import limits
from toolbelt.control.agents import agents
from toolbelt.control.people import client_connections, roles, unused_clients, users


def refused(desk: SignIn, **changes: str | None) -> str:
    """Return the error with which the page of a question that is not valid leads back to the client."""
    answer = desk.ask(**changes)
    assert answer.status_code == 400
    assert desk.ask(**changes).content == answer.content
    posted = fast_fixtures.logged_in(desk.user).post(desk.question(**changes), {"allow": "yes"})
    assert posted.status_code == 400
    assert not oauth.Grant.objects.exists()
    return came_back(answer)["error"]


@pytest.mark.parametrize(
    "changes",
    [
        {"code_challenge": None, "code_challenge_method": None},
        {"code_challenge_method": "plain"},
        {"code_challenge_method": None},
        {"code_challenge_method": "S512"},
    ],
)
def test_a_question_without_pkce_by_s256_is_refused(desk: SignIn, changes: dict[str, str | None]):
    assert refused(desk, **changes) == "invalid_request"


@pytest.mark.parametrize(
    "resource",
    [
        None,
        f"{ORIGIN}/mcp/",
        f"{ORIGIN}/",
        f"{ORIGIN}/mcp/ada?x=1",
        f"{ORIGIN}/mcp/ada#x",
        f"{ORIGIN}/mcp/ada/../bob",
        f"{ORIGIN}/api/v1/agents/ada",
        "https://testserver/mcp/ada",
        "http://testserver:80/mcp/ada",
        "http://testserver.evil.example/mcp/ada",
        "http://evil.example/mcp/ada",
        "http://evil.example/x/http://testserver/mcp/ada",
        "http://testserver@evil.example/mcp/ada",
        "/mcp/ada",
        "urn:ada",
    ],
)
def test_a_question_without_an_agent_s_address_as_its_resource_is_refused(desk: SignIn, resource: str | None):
    assert refused(desk, resource=resource) == "invalid_target"


def test_a_question_for_two_agents_is_refused(desk: SignIn):
    other = urllib.parse.urlencode({"resource": f"{ORIGIN}/mcp/bob"})
    answer = fast_fixtures.logged_in(desk.user).get(f"{desk.question()}&{other}")
    assert came_back(answer)["error"] == "invalid_target"


@pytest.mark.parametrize("response_type", ["token", "code token", "id_token"])
def test_no_token_is_given_without_a_code(desk: SignIn, response_type: str):
    assert refused(desk, response_type=response_type) in ("unsupported_response_type", "unauthorized_client")


@pytest.mark.parametrize(
    "redirect",
    [
        "https://evil.example/callback",
        "https://client.example/other",
        "https://client.example/callback/more",
        "https://client.example/callback?x=1",
        "https://client.example:444/callback",
        "http://client.example/callback",
        "https://client.example@evil.example/callback",
        "javascript:alert(1)",
    ],
)
def test_a_redirect_that_is_not_registered_is_refused_and_never_opened(desk: SignIn, redirect: str):
    answer = desk.ask(redirect_uri=redirect)
    assert answer.status_code == 400
    assert b'id="back"' not in answer.content
    assert b"evil.example" not in answer.content
    assert "Location" not in answer.headers


@pytest.mark.parametrize("client", ["nobody", "", "\x00", "https://client.example/client.json"])
def test_an_unknown_client_is_refused(desk: SignIn, client: str):
    answer = desk.ask(client_id=client)
    assert answer.status_code == 400
    assert b'id="back"' not in answer.content
    desk.client_id = client
    assert desk.exchange("x").json()["error"] in ("invalid_client", "invalid_request")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_a_client_on_the_person_s_machine_may_take_any_port(desk: SignIn, host: str):
    desk.redirect = f"http://{host}:1024/callback"
    desk.register()
    desk.redirect = f"http://{host}:51234/callback"
    assert desk.exchange(desk.consent()["code"]).status_code == 200
    assert desk.ask(redirect_uri=f"http://{host}:51234/other").status_code == 400


@pytest.mark.parametrize("redirect", ["cursor://anysphere.cursor/callback", "vscode://vscode.microsoft/x"])
def test_an_app_with_its_own_scheme_signs_in(desk: SignIn, redirect: str):
    desk.redirect = redirect
    assert desk.sign_in()


@pytest.mark.parametrize(
    "redirects",
    [
        ["http://client.example/callback"],
        ["https://client.example/callback", "http://10.0.0.1/callback"],
        ["javascript:alert(1)"],
        ["data:text/html,x"],
        ["evil://x/callback"],
        ["https://client.example/callback#x"],
        ["https://client.example/call back"],
        ["https://*.example/callback"],
        [],
        ["https://client.example/" + "x" * 1000],
        [f"https://client.example/{number}" for number in range(11)],
        [1],
    ],
)
def test_a_redirect_that_is_unsafe_is_not_registered(desk: SignIn, redirects: list[Any]):
    answer = desk.register(redirect_uris=redirects)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_redirect_uri")
    assert not oauth.Application.objects.exists()


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"client_name": 1}', b"[" * 100, b"\xff"])
def test_a_registration_that_cannot_be_read_is_refused(stored: None, body: bytes):
    answer = Browser().post("/oauth/register", body, "application/json")
    assert answer.status_code == 400
    assert answer.json()["error"] in ("invalid_client_metadata", "invalid_redirect_uri")


def test_a_client_gets_no_secret_whatever_it_asks_for(desk: SignIn):
    document = desk.register(
        token_endpoint_auth_method="client_secret_basic",
        grant_types=["authorization_code", "refresh_token", "password", "urn:x"],
        scope="admin",
    ).json()
    assert "client_secret" not in document
    assert document["token_endpoint_auth_method"] == "none"
    assert document["grant_types"] == ["authorization_code", "refresh_token"]
    assert document["scope"] == "tools"
    assert not oauth.AccessToken.objects.exists()


def test_the_name_of_a_client_is_one_line_without_hidden_characters(desk: SignIn):
    document = desk.register(client_name="De\u202esk\n  client " + "x" * 500).json()
    assert "\u202e" not in document["client_name"]
    assert "\n" not in document["client_name"]
    assert len(document["client_name"]) == 100


def test_an_address_registers_ten_clients_a_minute(desk: SignIn):
    statuses = [desk.register().status_code for _ in range(11)]
    assert statuses == [201] * 10 + [429]
    assert int(desk.register().headers["Retry-After"]) > 0
    limits.rates.forget()
    assert desk.register().status_code == 201


def test_clients_without_a_connection_are_forgotten_after_a_day(desk: SignIn):
    desk.sign_in()
    used = desk.client_id
    desk.register()
    tomorrow = timezone.now() + dt.timedelta(days=1, minutes=1)
    assert unused_clients.prune(timezone.now()) == 0
    assert unused_clients.prune(tomorrow) == 1
    assert [row.client_id for row in oauth.Application.objects.all()] == [used]
    client_connections.revoke(SETUP, models.ClientConnection.objects.get().pk)
    assert unused_clients.prune(tomorrow) == 1
    assert models.ClientConnection.objects.get().client == "Desk client"


def test_a_code_is_exchanged_once(desk: SignIn):
    code = desk.consent()["code"]
    assert desk.exchange(code).status_code == 200
    assert desk.exchange(code).json()["error"] == "invalid_grant"


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"code_verifier": "x" * 50}, "invalid_grant"),
        ({"code_verifier": None}, "invalid_request"),
        ({"redirect_uri": "https://client.example/other"}, "invalid_request"),
        ({"client_id": "nobody"}, "invalid_client"),
        ({"resource": f"{ORIGIN}/mcp/bob"}, "invalid_target"),
        ({"resource": f"{ORIGIN}/mcp/ada/"}, "invalid_target"),
        ({"resource": "https://evil.example/"}, "invalid_target"),
    ],
)
def test_a_code_is_exchanged_only_by_its_client_for_its_agent(
    desk: SignIn, changes: dict[str, Any], error: str
):
    answer = desk.post(
        "token",
        **{
            "grant_type": "authorization_code",
            "code": desk.consent()["code"],
            "redirect_uri": desk.redirect,
            "code_verifier": desk.verifier,
            "resource": desk.resource,
            **changes,
        },
    )
    assert (answer.status_code in (400, 401), answer.json()["error"]) == (True, error)
    assert not oauth.AccessToken.objects.exists()


def test_another_client_cannot_use_a_code_or_a_refresh_token(desk: SignIn):
    code = desk.consent()["code"]
    other = SignIn(user=desk.user, verifier=desk.verifier, redirect=desk.redirect)
    other.register()
    assert other.exchange(code).json()["error"] == "invalid_grant"
    desk.sign_in()
    assert other.refresh(desk.tokens["refresh_token"]).json()["error"] == "invalid_grant"
    other.post("revoke", token=desk.tokens["access_token"])
    assert models.ApiToken.objects.count() == 1


def test_a_code_expires(desk: SignIn):
    code = desk.consent()["code"]
    oauth.Grant.objects.update(expires=timezone.now() - dt.timedelta(seconds=1))
    assert desk.exchange(code).json()["error"] == "invalid_grant"


@pytest.mark.parametrize(
    "grant", ["password", "client_credentials", "urn:ietf:params:oauth:grant-type:device_code"]
)
def test_there_are_no_other_grants(desk: SignIn, grant: str):
    desk.register()
    answer = desk.post("token", grant_type=grant, username="olive", password="x")
    assert answer.json()["error"] == "unsupported_grant_type"


def test_a_refresh_cannot_choose_another_agent(desk: SignIn, endpoint: Endpoint):
    desk.sign_in()
    answer = desk.refresh(resource=f"{ORIGIN}/mcp/bob")
    assert answer.json()["error"] == "invalid_target"
    assert status(endpoint, desk.tokens["access_token"]) == 200


@pytest.mark.parametrize("agent", ["bob", "nobody"])
def test_a_token_of_another_agent_is_refused_like_one_that_does_not_exist(
    desk: SignIn, endpoint: Endpoint, agent: str
):
    token = desk.sign_in()
    for method in ("tools/list", "tools/call"):
        answer = Client(endpoint=endpoint, token=token, path=f"/mcp/{agent}").ask(method, {"name": "clock"})
        assert answer.status == 401
        assert f"/mcp/{agent}" in answer.headers["www-authenticate"]


@pytest.mark.parametrize(
    ("method", "address"),
    [
        ("GET", "/api/v1/agents/ada/surface"),
        ("POST", "/api/v1/agents/ada/calls/admit"),
        ("GET", "/api/v1/agents"),
        ("GET", "/metrics"),
    ],
)
def test_a_token_for_the_mcp_address_is_not_one_for_the_api(
    desk: SignIn, endpoint: Endpoint, method: str, address: str
):
    token = desk.sign_in()
    # The context of an MCP request is kept in the process: the API must not answer from it.
    assert status(endpoint, token) == 200
    from tests.mcp.conftest import Request

    body = {"calls": [{"tool": "clock"}]} if method == "POST" else None
    answer = endpoint.send(Request(method=method, path=address, token=token, body=body))
    assert answer.status in (401, 403)


def test_a_refresh_token_is_not_an_access_token(desk: SignIn, endpoint: Endpoint):
    desk.sign_in()
    assert status(endpoint, desk.tokens["refresh_token"]) == 401


def test_a_token_expires_within_an_hour(desk: SignIn, endpoint: Endpoint):
    token = desk.sign_in()
    assert desk.tokens["expires_in"] == 3600
    models.ApiToken.objects.update(expires=timezone.now() - dt.timedelta(seconds=1))
    assert status(endpoint, token) == 401
    assert desk.refresh().status_code == 200


def test_a_deactivated_person_s_client_is_refused_at_the_next_request(desk: SignIn, endpoint: Endpoint):
    token = desk.sign_in()
    code = desk.consent()["code"]
    assert status(endpoint, token) == 200
    desk.user.is_active = False
    desk.user.save()
    assert status(endpoint, token) == 401
    assert desk.exchange(code).json()["error"] == "invalid_grant"
    assert desk.refresh().json()["error"] == "invalid_grant"


def test_an_archived_agent_s_client_is_refused_at_the_next_request(desk: SignIn, endpoint: Endpoint):
    token = desk.sign_in()
    assert status(endpoint, token) == 200
    agents.archive(SETUP.replace(confirm=True), "ada", True)
    assert status(endpoint, token) == 401
    assert desk.refresh().json()["error"] == "invalid_grant"
    assert desk.ask().status_code == 404


def test_someone_without_permission_cannot_connect_a_client(stored: None):
    desk = SignIn(user=person("otto"))
    for answer in (desk.ask(), fast_fixtures.logged_in(desk.user).post(desk.question(), {"allow": "yes"})):
        assert answer.status_code == 403
        assert came_back(answer)["error"] == "access_denied"
    assert not oauth.Grant.objects.exists()


def test_an_operator_of_one_agent_connects_clients_to_that_agent_only(stored: None, endpoint: Endpoint):
    anna = person("anna")
    roles.set_operators(SETUP, "ada", ["anna"])
    desk = SignIn(user=anna)
    assert status(endpoint, desk.sign_in()) == 200
    assert SignIn(user=anna, agent="bob").ask().status_code == 403


def test_a_permission_that_is_withdrawn_ends_calls_at_once_and_refreshes(desk: SignIn, endpoint: Endpoint):
    client = Client(endpoint=endpoint, token=desk.sign_in())
    assert client.call("clock", {}).status == 200
    desk.user.user_permissions.clear()
    assert client.call("clock", {}).status == 403
    assert desk.refresh().json()["error"] == "invalid_grant"


def test_an_agent_that_does_not_exist_is_named_to_the_person_only(desk: SignIn):
    desk.agent = "nobody"
    assert desk.ask().status_code == 404


def test_a_form_of_another_site_allows_nothing(desk: SignIn):
    browser = Browser(enforce_csrf_checks=True)
    browser.force_login(desk.user)
    assert browser.post(desk.question(), {"allow": "yes"}).status_code == 403
    assert not models.ClientConnection.objects.exists()


def test_a_deleted_person_leaves_nothing_behind(desk: SignIn, endpoint: Endpoint):
    token = desk.sign_in()
    desk.user.delete()
    assert status(endpoint, token) == 401
    assert not oauth.RefreshToken.objects.exists()


def test_tokens_of_clients_are_not_among_the_tokens_that_operators_issue(desk: SignIn):
    from toolbelt.control.people import tokens

    desk.sign_in()
    assert tokens.all_tokens() == []
    assert users.find("olive").is_active
