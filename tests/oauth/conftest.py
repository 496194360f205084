"""Fixtures of the sign-in of MCP clients: people, a client that signs in step by step, and the endpoint it calls."""

from __future__ import annotations

import base64
import hashlib
import html
import re
import secrets
import urllib.parse
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth import models as logins
from django.test import Client as Browser

from tests import fast_fixtures
from tests.front.conftest import unhurried as unhurried
from tests.mcp.conftest import Client, Endpoint
from tests.mcp.conftest import endpoint as endpoint
from tests.mcp.conftest import on_their_own as on_their_own
from tests.mcp.conftest import stored as stored
from toolbelt.api import limits

ORIGIN = "http://testserver"
REDIRECT = "https://client.example/callback"


def person(name: str, *permissions: str) -> Any:
    """Create a user with these permissions."""
    user = get_user_model().objects.create_user(name)
    user.user_permissions.set(logins.Permission.objects.filter(codename__in=permissions))
    return user


@pytest.fixture(autouse=True)
def no_rates() -> None:
    limits.rates.forget()


@pytest.fixture
def olive(stored: None) -> Any:
    """Return a person who may use every agent."""
    return person("olive", "add_clientconnection")


@dataclass(kw_only=True)
class SignIn:
    """A client that signs in as an agent for a person, each step with what a test changes of it."""

    user: Any
    agent: str = "ada"
    name: str = "Desk client"
    redirect: str = REDIRECT
    client_id: str = ""
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(40))
    tokens: dict[str, Any] = field(default_factory=dict)

    @property
    def resource(self) -> str:
        return f"{ORIGIN}/mcp/{self.agent}"

    @property
    def challenge(self) -> str:
        digest = hashlib.sha256(self.verifier.encode()).digest()
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")

    def register(self, **changes: Any) -> Any:
        document = {"client_name": self.name, "redirect_uris": [self.redirect], **changes}
        answer = Browser(enforce_csrf_checks=True).post("/oauth/register", document, "application/json")
        if answer.status_code == 201:
            self.client_id = answer.json()["client_id"]
        return answer

    def question(self, **changes: str | None) -> str:
        """Return the address of the consent page."""
        if not self.client_id:
            self.register()
        parameters = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.redirect,
            "code_challenge": self.challenge,
            "code_challenge_method": "S256",
            "state": "s 1",
            "resource": self.resource,
            **changes,
        }
        sent = {name: value for name, value in parameters.items() if value is not None}
        return f"/oauth/authorize?{urllib.parse.urlencode(sent)}"

    def ask(self, **changes: str | None) -> Any:
        return fast_fixtures.logged_in(self.user).get(self.question(**changes))

    def consent(self, answer: str = "allow", **changes: str | None) -> dict[str, str]:
        """Answer the question, and return the parameters with which the person comes back."""
        page = fast_fixtures.logged_in(self.user).post(self.question(**changes), {answer: "yes"})
        assert page.status_code == 200, page.content.decode()
        return came_back(page)

    def exchange(self, code: str, **changes: str | None) -> Any:
        """Exchange a code for tokens."""
        return self.post(
            "token",
            grant_type="authorization_code",
            code=code,
            redirect_uri=self.redirect,
            code_verifier=self.verifier,
            resource=self.resource,
            **changes,
        )

    def refresh(self, token: str = "", **changes: str | None) -> Any:
        sent = token or self.tokens["refresh_token"]
        answer = self.post("token", grant_type="refresh_token", refresh_token=sent, **changes)
        if answer.status_code == 200 and not token:
            self.tokens = answer.json()
        return answer

    def post(self, endpoint: str, **fields: str | None) -> Any:
        fields = {"client_id": self.client_id, **fields}
        sent = {name: value for name, value in fields.items() if value is not None}
        return Browser(enforce_csrf_checks=True).post(f"/oauth/{endpoint}", sent)

    def sign_in(self) -> str:
        """Sign in, and return the access token."""
        answer = self.exchange(self.consent()["code"])
        assert answer.status_code == 200, answer.content
        self.tokens = answer.json()
        return str(self.tokens["access_token"])


def came_back(page: Any) -> dict[str, str]:
    """Return the parameters of the address to which a page sends a person back."""
    found = re.search(r'id="back" href="([^"]+)"', page.content.decode())
    assert found is not None, page.content.decode()
    address = html.unescape(found[1])
    return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(address).query))


@pytest.fixture
def desk(olive: Any) -> SignIn:
    """Return a client of olive, for the agent ada."""
    return SignIn(user=olive)


def status(endpoint: Endpoint, token: str, agent: str = "ada") -> int:
    """Return how a request of the agent's client with this token is answered."""
    return Client(endpoint=endpoint, token=token, path=f"/mcp/{agent}").ask("tools/list").status
