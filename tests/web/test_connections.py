"""Tests the page of clients that signed in: who sees and revokes which, and how far other clients came."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from tests import fast_fixtures
from tests.oauth.conftest import SignIn, person
from toolbelt import models
from toolbelt.api import limits
from toolbelt.control import writing
from toolbelt.control.people import client_connections, roles

SETUP = writing.by("setup", via="command")


@pytest.fixture(autouse=True)
def no_rates() -> None:
    limits.rates.forget()


def of_role(name: str, *names: str) -> Any:
    user = person(name)
    for role in names:
        roles.assign(SETUP, name, role)  # type: ignore[arg-type]
    return user


@pytest.fixture
def olive(belt: None) -> Any:
    return of_role("olive2", "operator")


@pytest.fixture
def desk(olive: Any) -> SignIn:
    return SignIn(user=olive)


def texts(user: Any, query: str = "") -> str:
    response = fast_fixtures.logged_in(user).get(f"/connections/{query}")
    assert response.status_code == 200
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


def revoke(user: Any, connection: int, **fields: str) -> Any:
    return fast_fixtures.logged_in(user).post(f"/connections/{connection}/revoke/", fields)


def test_a_connection_is_listed_with_its_client_its_host_its_agent_and_its_person(desk: SignIn):
    desk.sign_in()
    page = texts(desk.user)
    for text in ("Desk client", "client.example", "ada", "olive2", "connected", "not used yet"):
        assert text in page


def test_everyone_sees_their_own_connections_and_viewers_those_of_all(desk: SignIn):
    desk.sign_in()
    assert "Desk client" in texts(of_role("vera", "viewer"))
    assert "Desk client" not in texts(person("otto"))
    roles.remove(SETUP, "olive2", "operator")
    assert "Desk client" in texts(desk.user)


def test_a_connection_is_revoked_after_a_confirmation_by_its_person_or_an_administrator(desk: SignIn):
    for who in (desk.user, of_role("adam", "administrator")):
        desk.sign_in()
        [connection] = models.ClientConnection.objects.filter(revoked=None)
        revoke(who, connection.pk)
        assert models.ClientConnection.objects.get(pk=connection.pk).revoked is None
        revoke(who, connection.pk, confirm="true")
        assert models.ClientConnection.objects.get(pk=connection.pk).revoked is not None
        assert not models.ApiToken.objects.exists()
    assert "2 revoked" in texts(desk.user)


@pytest.mark.parametrize("names", [(), ("viewer",), ("operator",)])
def test_no_one_else_revokes_a_connection(desk: SignIn, names: tuple[str, ...]):
    desk.sign_in()
    [connection] = models.ClientConnection.objects.all()
    assert revoke(of_role("otto", *names), connection.pk, confirm="true").status_code == 403
    assert models.ApiToken.objects.count() == 1


def test_an_unknown_connection_is_not_found(olive: Any):
    assert revoke(olive, 77, confirm="true").status_code == 404


def test_connections_of_one_agent_are_shown_alone(desk: SignIn):
    desk.sign_in()
    assert "Desk client" in texts(desk.user, "?agent=ada")
    assert "Desk client" not in texts(desk.user, "?agent=bob")
    assert "Desk client" in texts(desk.user, "?q=client.example")
    assert "No matching connections" in texts(desk.user, "?q=nothing")


@pytest.mark.parametrize(
    ("end", "state"),
    [("is_active", "not valid: the person is deactivated"), ("tokens", "signed out")],
)
def test_the_state_says_why_a_connection_is_not_valid(desk: SignIn, end: str, state: str):
    desk.sign_in()
    if end == "is_active":
        desk.user.is_active = False
        desk.user.save()
    else:
        desk.post("revoke", token=desk.tokens["refresh_token"])
    assert state in texts(of_role("vera", "viewer"))


def steps(page: str) -> dict[str, str]:
    """Return the state of each step of the one attempt."""
    found = re.findall(r'<li data-step="(\w+)">([\w ]+)', page)
    assert len(found) == 6, page
    return {label: state for state, label in found}


def attempt(user: Any) -> str:
    return fast_fixtures.logged_in(user).get("/connections/").content.decode()


def test_each_step_of_a_client_is_shown_until_it_has_sent_a_request(desk: SignIn):
    vera = of_role("vera", "viewer")
    browser = Client(headers={"User-Agent": "Desk/1.0"})
    labels = ["Discovery", "Registration", "Login", "Consent", "Token", "First call"]

    def reached(number: int) -> None:
        states = ["done"] * number + ["next"] + ["later"] * (5 - number)
        assert steps(attempt(vera)) == dict(zip(labels, states, strict=True))

    browser.get("/.well-known/oauth-protected-resource/mcp/ada")
    reached(1)
    assert "Desk/1.0" in attempt(vera)
    desk.register()
    reached(2)
    desk.ask()
    reached(3)
    code = desk.consent()["code"]
    reached(4)
    desk.exchange(code)
    reached(5)
    models.ClientConnection.objects.update(last_used=models.ApiToken.objects.get().created)
    assert "Not connected yet" not in attempt(vera)


def test_the_request_that_failed_is_shown_with_the_way_out(desk: SignIn):
    vera = of_role("vera", "viewer")
    desk.register()
    desk.ask(resource=None)
    page = attempt(vera)
    assert steps(page)["Login"] == "failed"
    assert "GET /oauth/authorize" in page
    assert "invalid_target" in page
    desk.ask()
    assert "invalid_target" not in attempt(vera)
    desk.consent("deny")
    assert steps(attempt(vera))["Consent"] == "failed"
    desk.exchange("no code")
    assert "invalid_grant" in attempt(vera)


def test_attempts_are_shown_to_those_who_see_all_connections(desk: SignIn):
    desk.register()
    assert "Not connected yet" in texts(desk.user)
    assert "Not connected yet" not in texts(person("otto"))


def test_discoveries_are_recorded_for_agents_that_exist_and_within_limits(belt: None):
    for agent in ["nobody", *["ada"] * 30]:
        Client().get(f"/.well-known/oauth-protected-resource/mcp/{agent}")
    assert models.SignInAttempt.objects.count() == 1
    for number in range(300):
        address = f"10.0.{number // 250}.{number % 250}"
        Client(REMOTE_ADDR=address).get("/.well-known/oauth-protected-resource/mcp/ada")
    assert models.SignInAttempt.objects.count() == 200


def test_a_name_of_a_client_is_shown_as_text(desk: SignIn):
    desk.name = "<script>alert(1)</script>\u202e"
    desk.register()
    desk.sign_in()
    page = attempt(desk.user) + desk.ask().content.decode()
    assert "<script>alert" not in page
    assert "\u202e" not in page


def test_the_audit_log_says_who_connected_which_client(desk: SignIn):
    desk.sign_in()
    client_connections.revoke(writing.by("adam", "screen"), models.ClientConnection.objects.get().pk)
    page = fast_fixtures.logged_in(of_role("vera", "viewer")).get("/audit/").content.decode()
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", page))
    assert "connected the client Desk client" in text
    assert "disconnected the client Desk client" in text


def test_the_list_takes_a_fixed_number_of_queries(desk: SignIn, django_assert_max_num_queries: Any):
    for agent in ("ada", "bob"):
        for number in range(3):
            SignIn(user=desk.user, agent=agent, name=f"Client {number}").sign_in()
            limits.rates.forget()
    browser = fast_fixtures.logged_in(desk.user)
    with django_assert_max_num_queries(14):
        browser.get("/connections/")
