"""Tests clients whose id is the address of a document: off by default, fetched with a guard, held to the same rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import httpx
import pytest
from django.conf import settings as django_settings
from oauth2_provider import models as oauth
from oauth2_provider.settings import oauth2_settings

from tests.mcp.conftest import Endpoint
from tests.oauth.conftest import SignIn, status
from toolbelt.runtime import http

CLIENT = "https://client.example/client.json"
DOCUMENT: Mapping[str, Any] = {
    "client_id": CLIENT,
    "client_name": "Document client",
    "redirect_uris": ["https://client.example/callback", "http://localhost/callback"],
    "token_endpoint_auth_method": "none",
}

Serve = Callable[[Any], list[httpx.Request]]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Serve:
    """Return a function that answers fetches with a document or a response, and returns the list of requests."""
    sent: list[httpx.Request] = []

    def do(answer: Any) -> list[httpx.Request]:
        response = answer if isinstance(answer, httpx.Response) else httpx.Response(200, json=answer)

        def handle(request: httpx.Request) -> httpx.Response:
            sent.append(request)
            return response

        async def resolve(host: str, port: int) -> list[str]:
            return ["127.0.0.1" if host == "inside.example" else "93.184.215.14"]

        transport = http.PublicAddressTransport(httpx.MockTransport(handle), resolve)
        monkeypatch.setattr(http, "client", lambda: httpx.AsyncClient(transport=transport))
        return sent

    return do


@pytest.fixture
def on(settings: Any) -> None:
    settings.OAUTH2_PROVIDER = {**django_settings.OAUTH2_PROVIDER, "CIMD_ENABLED": True}


@pytest.fixture
def client(desk: SignIn) -> SignIn:
    desk.client_id = CLIENT
    return desk


def test_a_document_is_not_fetched_unless_a_setting_allows_it(client: SignIn, serve: Serve):
    sent = serve(DOCUMENT)
    assert client.ask().status_code == 400
    assert not sent
    assert not oauth2_settings.CIMD_ENABLED


def test_a_client_signs_in_with_its_document(client: SignIn, serve: Serve, on: None, endpoint: Endpoint):
    sent = serve(DOCUMENT)
    page = client.ask().content.decode()
    assert "Document client" in page
    assert [str(request.url) for request in sent] == ["https://93.184.215.14/client.json"]
    assert status(endpoint, client.sign_in()) == 200
    assert len(sent) == 1


def test_a_client_on_the_person_s_machine_has_any_port(client: SignIn, serve: Serve, on: None):
    serve(DOCUMENT)
    client.redirect = "http://localhost:3118/callback"
    assert client.sign_in()


@pytest.mark.parametrize(
    "changes",
    [
        {"client_id": "https://client.example/other.json"},
        {"token_endpoint_auth_method": "private_key_jwt"},
        {"client_secret": "x"},
        {"redirect_uris": ["http://client.example/callback"]},
        {"redirect_uris": ["javascript:alert(1)"]},
        {"redirect_uris": []},
        {"grant_types": ["client_credentials"]},
        {"client_name": 1},
    ],
)
def test_a_document_that_is_not_valid_is_refused(
    client: SignIn, serve: Serve, on: None, changes: Mapping[str, Any]
):
    serve({**DOCUMENT, **changes})
    # Each has its own id, because the library remembers an address that failed.
    answer = client.ask()
    valid = changes == {"client_name": 1}
    assert (answer.status_code, oauth.Application.objects.count()) == ((200, 1) if valid else (400, 0))


@pytest.mark.parametrize(
    "response",
    [
        httpx.Response(404),
        httpx.Response(302, headers={"location": "https://client.example/real.json"}),
        httpx.Response(200, text="<html>", headers={"content-type": "text/html"}),
        httpx.Response(200, text="{" * 100, headers={"content-type": "application/json"}),
        httpx.Response(200, text="[]", headers={"content-type": "application/json"}),
        httpx.Response(200, json={**DOCUMENT, "x": "y" * 20_000}),
    ],
)
def test_an_answer_that_is_no_small_document_is_refused(
    client: SignIn, serve: Serve, on: None, response: httpx.Response
):
    sent = serve(response)
    assert client.ask().status_code == 400
    assert len(sent) == 1
    assert not oauth.Application.objects.exists()


@pytest.mark.parametrize(
    "address",
    [
        "https://inside.example/client.json",
        "https://client.example",
        "https://client.example/",
        "https://client.example/a/../client.json",
        "https://user@client.example/client.json",
        "https://client.example/client.json#x",
        "http://client.example/client.json",
    ],
)
def test_no_other_address_is_fetched(desk: SignIn, serve: Serve, on: None, address: str):
    sent = serve({**DOCUMENT, "client_id": address})
    desk.client_id = address
    assert desk.ask().status_code == 400
    assert not sent


def test_a_request_for_a_token_fetches_nothing(client: SignIn, serve: Serve, on: None):
    sent = serve(DOCUMENT)
    assert client.exchange("x").json()["error"] == "invalid_client"
    assert client.post("revoke", token="x").status_code == 401
    assert not sent


@pytest.fixture(autouse=True)
def nothing_failed_before() -> None:
    from django.core.cache import cache

    cache.clear()
