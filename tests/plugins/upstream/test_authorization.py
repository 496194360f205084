"""Tests of finding a server's authorization server, and of what it may not name or answer."""

from __future__ import annotations

import asyncio
import json
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any

import httpx2
import pytest

from toolbelt.core import connections
from toolbelt.plugins.upstream import authorization, transports

SERVER = "https://notes.example/mcp"
ISSUER = "https://login.example"
REDIRECT = "https://toolbelt.example/signed-in/"
PUBLIC, PRIVATE = "93.184.216.34", "10.0.0.7"
RESOURCE = {"resource": SERVER, "authorization_servers": [ISSUER], "scopes_supported": ["notes"]}
METHODS = "code_challenge_methods_supported"
METADATA: dict[str, Any] = {
    "issuer": ISSUER,
    "authorization_endpoint": f"{ISSUER}/authorize",
    "token_endpoint": f"{ISSUER}/token",
    "registration_endpoint": f"{ISSUER}/register",
    METHODS: ["S256"],
}
RESOURCE_AT = "https://notes.example/.well-known/oauth-protected-resource/mcp"
METADATA_AT = f"{ISSUER}/.well-known/oauth-authorization-server"

Answers = Mapping[str, Any]


class Web:
    """Answers by address, what was asked, and the address of each host."""

    def __init__(self, answers: Answers, addresses: Mapping[str, str] | None = None) -> None:
        self.answers = {
            RESOURCE_AT: RESOURCE,
            METADATA_AT: METADATA,
            f"{ISSUER}/register": (201, {"client_id": "registered"}),
            **answers,
        }
        self.addresses = addresses or {}
        # Answers a registration by what is asked for; otherwise its address does.
        self.answer_registration: Callable[[Answers], Any] | None = None
        self.asked: list[str] = []
        self.forms: list[dict[str, str]] = []

    def transport(self) -> transports.UpstreamTransport:
        async def resolve(host: str, port: int) -> list[str]:
            return [self.addresses.get(host, PUBLIC)]

        return transports.UpstreamTransport(httpx2.MockTransport(self._answer), resolve=resolve)

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        url = str(request.url.copy_with(host=request.headers["host"].partition(":")[0]))
        self.asked.append(url)
        if request.method == "POST":
            self.forms.append(dict(urllib.parse.parse_qsl(request.content.decode())))
        if url == SERVER or url.endswith("//notes.internal/mcp"):
            return httpx2.Response(401, headers={"www-authenticate": "Bearer"})
        answer = self.answers.get(url, (404, {}))
        if url == f"{ISSUER}/register" and self.answer_registration is not None:
            answer = self.answer_registration(json.loads(request.content))
        status, document = answer if isinstance(answer, tuple) else (200, answer)
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        return httpx2.Response(status, content=body, headers={"content-type": "application/json"})


def begin(web: Web, *, may_be_private: bool = False, **connection: Any) -> authorization.Begun:
    settings = connections.Connection(**{"url": SERVER, **connection})
    return asyncio.run(
        authorization.begin(
            settings,
            redirect_uri=REDIRECT,
            state="s",
            may_be_private=may_be_private,
            transport=web.transport,
        )
    )


def refused(web: Web, **connection: Any) -> str:
    with pytest.raises(authorization.FailedError) as caught:
        begin(web, **connection)
    return str(caught.value)


def with_metadata(**changes: Any) -> Web:
    return Web({METADATA_AT: {**METADATA, **changes}})


def asked_of(url: str) -> dict[str, str]:
    return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))


def test_the_person_is_sent_with_pkce_the_resource_and_the_scopes_of_the_server() -> None:
    begun = begin(Web({}))
    asked = asked_of(begun.url)
    assert begun.url.startswith(f"{ISSUER}/authorize?")
    assert (asked["client_id"], asked["state"], asked["redirect_uri"]) == ("registered", "s", REDIRECT)
    assert (asked["code_challenge_method"], asked["resource"], asked["scope"]) == ("S256", SERVER, "notes")
    assert begun.verifier not in begun.url


def test_the_query_of_the_servers_address_is_not_told_to_the_authorization_server() -> None:
    host = SERVER.removesuffix("/mcp")
    at_host = {name: value.replace(ISSUER, host) for name, value in METADATA.items() if name != METHODS}
    web = Web(
        {
            RESOURCE_AT: (404, {}),
            f"{host}/.well-known/oauth-authorization-server": at_host,
            f"{host}/register": (201, {"client_id": "registered"}),
        }
    )
    begun = begin(web, url=f"{SERVER}?key=sesame")
    assert asked_of(begun.url)["resource"] == SERVER
    assert not any("sesame" in url for url in [begun.url, *web.asked] if not url.startswith(SERVER))


def test_scopes_of_the_connection_are_asked_for_instead() -> None:
    assert asked_of(begin(Web({}), scopes="read write").url)["scope"] == "read write"


def test_a_client_that_an_operator_gives_is_not_registered() -> None:
    web = Web({})
    begun = begin(web, client_id="ours", client_secret="hush hush")
    assert asked_of(begun.url)["client_id"] == "ours"
    assert begun.client.information.token_endpoint_auth_method == "client_secret_basic"
    assert f"{ISSUER}/register" not in web.asked


def test_a_client_that_an_operator_gives_is_for_one_authorization_server() -> None:
    given: dict[str, Any] = {"client_id": "ours", "client_secret": "hush hush"}
    assert begin(Web({}), **given, issuer=f"{ISSUER}/").client.information.client_id == "ours"
    web = Web({})
    with pytest.raises(authorization.OtherIssuerError, match=ISSUER):
        begin(web, **given, issuer="https://other.example")
    assert (f"{ISSUER}/register" in web.asked, web.forms) == (False, [{}])


def test_an_authorization_server_that_does_not_know_the_scopes_registers_without_them() -> None:
    refusal = (400, {"error": "invalid_client_metadata", "error_description": "scope must be ours"})
    web = Web({})
    web.answer_registration = lambda asked: (201, {"client_id": "bare"}) if "scope" not in asked else refusal
    begun = begin(web)
    assert (asked_of(begun.url)["client_id"], asked_of(begun.url)["scope"]) == ("bare", "notes")


def test_openid_discovery_is_read_where_there_are_no_metadata_of_oauth() -> None:
    web = Web({METADATA_AT: (404, {}), f"{ISSUER}/.well-known/openid-configuration": METADATA})
    assert begin(web).client.issuer.rstrip("/") == ISSUER


@pytest.mark.parametrize(
    ("web", "words"),
    [
        (Web({RESOURCE_AT: (404, {}), METADATA_AT: (404, {})}), "names no authorization server"),
        (Web({METADATA_AT: (404, {})}), "no valid metadata of OAuth"),
        (Web({RESOURCE_AT: {**RESOURCE, "resource": "https://other.example/mcp"}}), "another resource"),
        (Web({RESOURCE_AT: (503, {})}), "HTTP 503"),
        (with_metadata(issuer="https://evil.example"), "issuer mismatch"),
        (with_metadata(token_endpoint="http://login.example/token"), "without https"),
        (with_metadata(authorization_endpoint="http://login.example/authorize"), "without https"),
        (with_metadata(authorization_endpoint="javascript:alert(1)"), "no valid metadata"),
        (with_metadata(code_challenge_methods_supported=["plain"]), "PKCE with S256"),
        (with_metadata(registration_endpoint=None), REDIRECT),
        (Web({f"{ISSUER}/register": (400, {"error": "invalid_redirect_uri"})}), "invalid_redirect_uri"),
        (Web({f"{ISSUER}/register": (201, {"client_secret": "hush"})}), "registration is not valid"),
        (Web({METADATA_AT: b" " * (authorization.MAX_BYTES + 1)}), "more than"),
    ],
)
def test_a_server_that_does_not_do_what_oauth_asks_is_refused(web: Web, words: str) -> None:
    said = refused(web)
    assert words in said
    assert "hush" not in said


@pytest.mark.parametrize("named", ["resource", "metadata", "registration"])
def test_a_public_server_may_name_no_private_address(named: str) -> None:
    web = {
        "resource": Web({RESOURCE_AT: {**RESOURCE, "authorization_servers": ["https://inside.example"]}}),
        "metadata": with_metadata(registration_endpoint="https://inside.example/register"),
        "registration": with_metadata(registration_endpoint="https://10.0.0.9/register"),
    }[named]
    web.addresses = {"inside.example": PRIVATE, "10.0.0.9": "10.0.0.9"}
    assert "not a public address" in refused(web)
    assert not [url for url in web.asked if "inside" in url or "10.0.0.9" in url]


def test_an_administrator_can_allow_private_addresses() -> None:
    web = with_metadata(registration_endpoint="https://inside.example/register")
    web.answers["https://inside.example/register"] = (201, {"client_id": "inside"})
    web.addresses = {"inside.example": PRIVATE}
    assert begin(web, may_be_private=True).client.information.client_id == "inside"


def test_a_private_server_may_name_private_addresses_but_never_the_clouds_own() -> None:
    web = with_metadata(registration_endpoint="https://inside.example/register")
    web.answers["https://inside.example/register"] = (201, {"client_id": "inside"})
    web.addresses = {"notes.example": PRIVATE, "inside.example": PRIVATE}
    assert begin(web).client.information.client_id == "inside"
    web.addresses = {"notes.example": PRIVATE, "inside.example": "169.254.169.254"}
    assert "cloud platform" in refused(web)


def test_a_token_endpoint_that_has_become_private_is_sent_nothing() -> None:
    web = Web({})
    begun = begin(web)
    web.addresses = {"login.example": PRIVATE}
    web.asked.clear()
    with pytest.raises(authorization.FailedError, match="not a public address"):
        finish(web, begun)
    assert web.asked == []


def finish(web: Web, begun: authorization.Begun, iss: str | None = None) -> authorization.Grant:
    return asyncio.run(
        authorization.finish(begun, "the-code", iss, may_be_private=False, transport=web.transport)
    )


def token(**fields: Any) -> dict[str, Any]:
    return {"access_token": "one", "token_type": "bearer", **fields}


def test_the_code_is_exchanged_with_the_verifier_and_the_resource() -> None:
    web = Web({f"{ISSUER}/token": token(expires_in=60, refresh_token="two")})
    begun = begin(web)
    grant = finish(web, begun)
    sent = web.forms[-1]
    assert (sent["code"], sent["code_verifier"], sent["resource"]) == ("the-code", begun.verifier, SERVER)
    assert (grant.token.access_token, grant.token.refresh_token, grant.token.scope) == ("one", "two", "notes")


@pytest.mark.parametrize(
    ("metadata", "iss"),
    [
        ({}, "https://evil.example"),
        ({"authorization_response_iss_parameter_supported": True}, None),
        ({}, f"{ISSUER}/"),
    ],
)
def test_an_answer_of_another_issuer_is_refused_before_the_code_is_sent(metadata: Any, iss: Any) -> None:
    web = with_metadata(**metadata)
    begun = begin(web)
    web.asked.clear()
    with pytest.raises(authorization.FailedError, match="Another authorization server"):
        finish(web, begun, iss)
    assert web.asked == []


@pytest.mark.parametrize(
    ("answer", "is_refused"),
    [
        ((400, {"error": "invalid_grant", "error_description": "no the-code"}), True),
        ((401, {"error": "invalid_client"}), True),
        ((400, {"error": "temporarily_unavailable"}), False),
        ((400, b"<html>"), False),
        ((429, {"error": "slow_down"}), False),
        ((503, {}), False),
        ((200, {"token": "one"}), False),
        ((200, b"["), False),
    ],
)
def test_only_a_refusal_of_the_grant_ends_it(answer: Any, is_refused: bool) -> None:
    web = Web({f"{ISSUER}/token": answer})
    with pytest.raises(authorization.FailedError) as caught:
        finish(web, begin(web))
    assert isinstance(caught.value, authorization.RefusedError) is is_refused
    assert "the-code" not in str(caught.value)


def test_a_refresh_keeps_what_the_answer_leaves_out() -> None:
    web = Web({f"{ISSUER}/token": token(refresh_token="two")})
    grant = finish(web, begin(web))
    web.answers[f"{ISSUER}/token"] = token(access_token="three")
    renewed = asyncio.run(authorization.refresh(grant, may_be_private=False, transport=web.transport))
    assert (renewed.token.access_token, renewed.token.refresh_token, renewed.token.scope) == (
        "three",
        "two",
        "notes",
    )


def test_a_secret_is_sent_as_the_authorization_server_takes_it() -> None:
    web = with_metadata(token_endpoint_auth_methods_supported=["client_secret_post"])
    web.answers[f"{ISSUER}/token"] = token()
    finish(web, begin(web, client_id="ours", client_secret="hush hush"))
    assert web.forms[-1]["client_secret"] == "hush hush"
