"""OAuth with upstream servers: finding a server's authorization server, and getting tokens from it (RFC 9728, 8414,
7591, 8707, 9207, PKCE).

The official client's own flow waits for the person in one process, so only its parts are used: it finds, reads and
checks metadata, registrations and answers. What a server names, no operator has chosen: a public server may name public
addresses only, and one that is reached over https only https.

This module requires ``mcp``, so it is only imported when it is used.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import urllib.parse
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import httpx2
import mcp.shared.auth_utils
import pydantic
from mcp.client import auth
from mcp.client.auth import oauth2, utils
from mcp.shared import auth as models

from toolbelt.core import connections, errors, secret_texts
from toolbelt.core.imported import cleaning
from toolbelt.plugins.upstream import transports

SECONDS = 10.0
MAX_BYTES = 256 * 1024
MAX_WORDS = 300
# As long as an access token is taken to live.
MAX_SECONDS = 365 * 86_400
# What a server is sent to find out what it answers without a token: a request without effect.
_PROBE = {"jsonrpc": "2.0", "id": "toolbelt-sign-in", "method": "ping"}
_ACCEPT = {"accept": "application/json, text/event-stream"}

Transport = Callable[[], transports.UpstreamTransport]


class FailedError(errors.Refused):
    """A server does not do what OAuth asks of it, or does not answer. Its owner can fix this."""


class OtherIssuerError(FailedError):
    """The server names another authorization server than the one that is to be used. An operator can confirm it."""


class RefusedError(FailedError):
    """The authorization server refuses the grant for good: someone has to sign in again."""


class Client(pydantic.BaseModel):
    """A registered client of an authorization server, and what it asks for."""

    issuer: str
    metadata: models.OAuthMetadata
    information: models.OAuthClientInformationFull
    resource: str
    scopes: str = ""
    redirect_uri: str
    at_public_address: bool


class Begun(pydantic.BaseModel):
    """A sign-in that waits for its person to come back; ``url`` is where the person is sent."""

    client: Client
    verifier: str
    url: str


class Grant(pydantic.BaseModel):
    """A sign-in: the client and its tokens."""

    client: Client
    token: models.OAuthToken


async def begin(
    settings: connections.Connection,
    *,
    redirect_uri: str,
    state: str,
    may_be_private: bool,
    more_scopes: str = "",
    transport: Transport | None = None,
) -> Begun:
    """Find out how to sign in at a server, and return where to send the person. Raise FailedError.

    ``settings`` have no variables anymore. ``may_be_private``: public servers may name private addresses.
    ``more_scopes`` are asked for besides.
    """
    async with _guarded(transport) as guard, _client(guard) as http:
        client = await _registered(
            http, guard, settings, redirect_uri, more_scopes, may_be_private=may_be_private
        )
    pkce = auth.PKCEParameters.generate()
    asked = {
        "response_type": "code",
        "client_id": client.information.client_id,
        "redirect_uri": redirect_uri,
        "state": state,
        "code_challenge": pkce.code_challenge,
        "code_challenge_method": "S256",
        "resource": client.resource,
        **({"scope": client.scopes} if client.scopes else {}),
        # OpenID Connect Core, 11: without the question, there is no refresh token.
        **({"prompt": "consent"} if "offline_access" in client.scopes.split() else {}),
    }
    endpoint = str(client.metadata.authorization_endpoint)
    url = f"{endpoint}{'&' if '?' in endpoint else '?'}{urllib.parse.urlencode(asked)}"
    return Begun(client=client, verifier=pkce.code_verifier, url=url)


async def finish(
    begun: Begun, code: str, iss: str | None, *, may_be_private: bool, transport: Transport | None = None
) -> Grant:
    """Exchange the code with which a person came back. Raise FailedError or RefusedError."""
    check_issuer(begun.client, iss)
    data = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": begun.client.redirect_uri,
        "code_verifier": begun.verifier,
    }
    token = await _token(begun.client, data, may_be_private=may_be_private, transport=transport)
    if token.scope is None:
        # RFC 6749, 5.1: then it is what was asked for.
        token.scope = begun.client.scopes or None
    return Grant(client=begun.client, token=token)


def check_issuer(client: Client, iss: str | None) -> None:
    """Raise FailedError if another authorization server sent the person back (RFC 9207)."""
    try:
        utils.validate_authorization_response_iss(iss, client.metadata)
    except auth.OAuthFlowError as error:
        raise FailedError(
            "Another authorization server sent you back than the one that you were sent to. Nothing was stored."
        ) from error


async def refresh(grant: Grant, *, may_be_private: bool, transport: Transport | None = None) -> Grant:
    """Return the grant with a new access token. Raise RefusedError or FailedError."""
    if not grant.token.refresh_token:
        raise RefusedError("The access has ended, and the server gave no token to renew it.")
    data = {"grant_type": "refresh_token", "refresh_token": grant.token.refresh_token}
    token = await _token(grant.client, data, may_be_private=may_be_private, transport=transport)
    # RFC 6749, 6: what an answer leaves out stays as it was.
    token.refresh_token = token.refresh_token or grant.token.refresh_token
    token.scope = token.scope or grant.token.scope
    return grant.model_copy(update={"token": token})


def expiry(token: models.OAuthToken, now: dt.datetime) -> dt.datetime | None:
    """Return when an access token that was issued now expires; None if that is not known."""
    seconds = token.expires_in
    return (
        now + dt.timedelta(seconds=min(seconds, MAX_SECONDS)) if seconds is not None and seconds > 0 else None
    )


async def revoke(grant: Grant, *, may_be_private: bool, transport: Transport | None = None) -> None:
    """Revoke the tokens at the authorization server (RFC 7009), if it has an endpoint for that."""
    endpoint = grant.client.metadata.revocation_endpoint
    if endpoint is None:
        return
    for kind in ("refresh_token", "access_token"):
        if token := getattr(grant.token, kind):
            with contextlib.suppress(FailedError):
                data = {"token": token, "token_type_hint": kind}
                await _posted(grant.client, str(endpoint), data, may_be_private, transport)


async def _registered(
    http: httpx2.AsyncClient,
    guard: transports.UpstreamTransport,
    settings: connections.Connection,
    redirect_uri: str,
    more_scopes: str,
    *,
    may_be_private: bool,
) -> Client:
    """Return a client of the server's authorization server: the given one, or one that is registered now."""
    try:
        probe = http.build_request("POST", settings.url, json=_PROBE, headers={**_ACCEPT, **settings.headers})
        refusal = await _fetched(http, probe)
        at_public_address = await guard.is_public(settings.url)
        guard.public_only = at_public_address and not may_be_private
        resource = await _resource_metadata(http, settings.url, refusal)
        issuer = str(resource.authorization_servers[0]) if resource else None
        metadata = await _metadata(http, settings.url, issuer)
        _check_expected(settings, str(metadata.issuer))
        scopes = settings.scopes or utils.get_client_metadata_scopes(
            utils.extract_scope_from_www_auth(refusal), resource, metadata, models.DEFAULT_GRANT_TYPES
        )
        scopes = utils.union_scopes(scopes, more_scopes)
        information = _given(settings, metadata, redirect_uri) or await _registration(
            http, metadata, redirect_uri, scopes
        )
    except (auth.OAuthFlowError, httpx2.HTTPError, OSError, ValueError) as error:
        raise FailedError(f"The sign-in did not begin: {_words(error)}") from error
    # Its query may have a secret, and is no part of what the server is called.
    context = _context(str(httpx2.URL(settings.url).copy_with(query=None)), redirect_uri)
    context.protected_resource_metadata = resource
    return Client(
        issuer=str(metadata.issuer),
        metadata=metadata,
        information=information,
        resource=context.get_resource_url(),
        scopes=scopes or "",
        redirect_uri=redirect_uri,
        at_public_address=at_public_address,
    )


async def _resource_metadata(
    http: httpx2.AsyncClient, url: str, refusal: httpx2.Response
) -> models.ProtectedResourceMetadata | None:
    """Return what the server says of its authorization servers; None if it says nothing (MCP 2025-03-26)."""
    named = utils.extract_resource_metadata_from_www_auth(refusal)
    for address in utils.build_protected_resource_metadata_discovery_urls(named, url):
        _check_scheme(url, address)
        response = await _fetched(http, utils.create_oauth_metadata_request(address))
        if response.status_code >= 500 or response.status_code == 429:
            raise auth.OAuthFlowError(f"{address} was answered with HTTP {response.status_code}.")
        metadata = await utils.handle_protected_resource_response(response)
        if metadata is None:
            continue
        requested = mcp.shared.auth_utils.resource_url_from_server_url(url)
        if not mcp.shared.auth_utils.check_resource_allowed(requested, str(metadata.resource)):
            raise auth.OAuthFlowError(f"Its metadata are those of another resource, {metadata.resource}.")
        return metadata
    return None


async def _metadata(http: httpx2.AsyncClient, url: str, issuer: str | None) -> models.OAuthMetadata:
    """Return the metadata of the authorization server, with the issuer that was expected."""
    parts = urllib.parse.urlsplit(url)
    expected = issuer or f"{parts.scheme}://{parts.netloc}"
    _check_scheme(url, expected)
    for address in utils.build_oauth_authorization_server_metadata_discovery_urls(issuer, url):
        is_next, metadata = await utils.handle_auth_metadata_response(
            await _fetched(http, utils.create_oauth_metadata_request(address))
        )
        if metadata is not None:
            if not utils.issuers_match(str(metadata.issuer), expected):
                utils.validate_metadata_issuer(metadata, expected)
            _check_metadata(url, metadata)
            return metadata
        if not is_next:
            break
    what = (
        f"its authorization server, {expected}, has"
        if issuer
        else "it names no authorization server, and has"
    )
    raise auth.OAuthFlowError(
        f"{what} no valid metadata of OAuth. If it wants a key, give it as a header of the connection."
    )


def _check_metadata(url: str, metadata: models.OAuthMetadata) -> None:
    """Raise OAuthFlowError if an endpoint may not be used, or the server does without PKCE with S256."""
    for endpoint in (
        metadata.authorization_endpoint,
        metadata.token_endpoint,
        metadata.registration_endpoint,
        metadata.revocation_endpoint,
    ):
        if endpoint is not None:
            _check_scheme(url, str(endpoint))
    methods = metadata.code_challenge_methods_supported
    if methods is not None and "S256" not in methods:
        raise auth.OAuthFlowError("its authorization server does not take PKCE with S256.")


def _check_scheme(url: str, named: str) -> None:
    """Raise OAuthFlowError if a server that is reached over https names an address that is not."""
    is_web = named.startswith(("https://", "http://"))
    if not is_web or (url.startswith("https://") and not named.startswith("https://")):
        raise auth.OAuthFlowError(f"it names an address without https, {named}.")


def is_same_issuer(one: str, other: str) -> bool:
    """Return whether two issuers are the same, whether or not the root of a host ends in a slash."""
    return utils.issuers_match(one, other)


def _check_expected(settings: connections.Connection, issuer: str) -> None:
    """Raise OtherIssuerError if an operator has named another authorization server: what they gave is for that one."""
    if settings.issuer and not is_same_issuer(settings.issuer, issuer):
        named, expected = (cleaning.line(text, MAX_WORDS) for text in (issuer, settings.issuer))
        what = "its client id and secret are" if settings.client_id else "its connection is"
        raise OtherIssuerError(
            f"The sign-in did not begin: the server now names the authorization server {named}, and {what} for"
            f" {expected}. Nothing was sent. If that is right, an operator can change the authorization server of the"
            " connection, with what you registered there."
        )


def _given(
    settings: connections.Connection, metadata: models.OAuthMetadata, redirect_uri: str
) -> models.OAuthClientInformationFull | None:
    """Return the client that an operator has registered; None if there is none."""
    if not settings.client_id:
        return None
    # RFC 8414, 2: without a list, it is Basic.
    methods = metadata.token_endpoint_auth_methods_supported or ["client_secret_basic"]
    method = "client_secret_basic" if "client_secret_basic" in methods else "client_secret_post"
    return models.OAuthClientInformationFull(
        client_id=settings.client_id,
        client_secret=settings.client_secret or None,
        token_endpoint_auth_method=method if settings.client_secret else "none",
        redirect_uris=[pydantic.AnyUrl(redirect_uri)],
    )


async def _registration(
    http: httpx2.AsyncClient, metadata: models.OAuthMetadata, redirect_uri: str, scopes: str | None
) -> models.OAuthClientInformationFull:
    """Register Toolbelt, and return what it is registered as."""
    if metadata.registration_endpoint is None:
        raise auth.OAuthRegistrationError(
            "its authorization server registers no clients. Register Toolbelt there yourself, with the redirect"
            f" {redirect_uri}, and give the connection the client id, and the secret if there is one."
        )
    request = utils.create_client_registration_request(metadata, _asked(redirect_uri, scopes), "")
    response = await _fetched(http, request)
    if response.status_code == 400 and scopes:
        # Some know only scopes of their own, and not those of the servers for which they issue tokens.
        request = utils.create_client_registration_request(metadata, _asked(redirect_uri, None), "")
        response = await _fetched(http, request)
    if response.status_code not in (200, 201):
        raise auth.OAuthRegistrationError(
            f"its authorization server refused the registration (HTTP {response.status_code}){_error(response)[1]}"
        )
    try:
        information = await utils.handle_registration_response(response)
    except auth.OAuthRegistrationError as error:
        # It quotes the answer, which may have a secret.
        raise auth.OAuthRegistrationError(
            "its authorization server's answer to the registration is not valid."
        ) from error
    oauth2.check_registration_usable(information)
    return information


def _asked(redirect_uri: str, scopes: str | None) -> models.OAuthClientMetadata:
    return models.OAuthClientMetadata(
        client_name="Toolbelt",
        redirect_uris=[pydantic.AnyUrl(redirect_uri)],
        token_endpoint_auth_method="none",  # noqa: S106
        application_type="web",
        scope=scopes,
    )


def _context(url: str, redirect_uri: str) -> oauth2.OAuthContext:
    """Return the official client's context of a sign-in, which stores nothing here."""
    storage: Any = None
    return oauth2.OAuthContext(url, _asked(redirect_uri, None), storage, None, None)


async def _token(
    client: Client, data: Mapping[str, str], *, may_be_private: bool, transport: Transport | None
) -> models.OAuthToken:
    """Return the answer of the token endpoint. Raise RefusedError or FailedError."""
    endpoint = str(client.metadata.token_endpoint)
    asked = {**data, "resource": client.resource}
    response = await _posted(client, endpoint, asked, may_be_private, transport)
    try:
        return models.OAuthToken.model_validate_json(response.content)
    except ValueError:
        # Without the cause, which quotes the answer.
        raise FailedError("The authorization server's answer has no valid token.") from None


async def _posted(
    client: Client,
    endpoint: str,
    data: Mapping[str, str],
    may_be_private: bool,
    transport: Transport | None,
) -> httpx2.Response:
    """Return the answer to a form that the client sends with its secret. Raise RefusedError or FailedError."""
    context = _context(client.resource, client.redirect_uri)
    context.client_info = client.information
    form = {**data, "client_id": client.information.client_id}
    sent, headers = context.prepare_token_auth(form, {"accept": "application/json"})
    hidden = [*data.values(), client.information.client_secret or ""]
    try:
        async with _guarded(transport) as guard, _client(guard) as http:
            guard.public_only = client.at_public_address and not may_be_private
            response = await _fetched(http, httpx2.Request("POST", endpoint, data=sent, headers=headers))
    except (httpx2.HTTPError, OSError, auth.OAuthFlowError) as error:
        raise FailedError(f"The authorization server did not answer: {_words(error)}") from error
    if response.status_code in (200, 201):
        return response
    code, words = _error(response, hidden)
    if response.status_code in (400, 401) and code and code not in ("temporarily_unavailable", "slow_down"):
        raise RefusedError(f"The authorization server refused it{words}")
    raise FailedError(f"The authorization server answered HTTP {response.status_code}{words}")


def _error(response: httpx2.Response, hidden: list[str] | None = None) -> tuple[str, str]:
    """Return the code of an error (RFC 6749, 5.2), and the end of a sentence that quotes it; nothing of ``hidden``."""
    try:
        document = response.json()
    except ValueError:
        return "", "."
    if not isinstance(document, dict) or not isinstance(code := document.get("error"), str) or not code:
        return "", "."
    said = document.get("error_description")
    words = f"{code}: {said}" if isinstance(said, str) and said else code
    for text in sorted(filter(None, hidden or ()), key=len, reverse=True):
        words = words.replace(text, secret_texts.WITHHELD)
    return code, f" ({cleaning.line(words, MAX_WORDS)})."


def _words(error: Exception) -> str:
    """Return what went wrong, for an operator."""
    if isinstance(error, pydantic.ValidationError):
        return "an answer is not valid."
    late = f"there was no answer within {SECONDS:g} s" if isinstance(error, TimeoutError) else ""
    words = cleaning.line(late or str(error) or type(error).__name__, MAX_WORDS)
    return f"{words.rstrip('.')}."


@contextlib.asynccontextmanager
async def _guarded(transport: Transport | None) -> AsyncIterator[transports.UpstreamTransport]:
    guard = transport() if transport is not None else transports.UpstreamTransport(transports.pool())
    async with guard:
        yield guard


def _client(guard: transports.UpstreamTransport) -> httpx2.AsyncClient:
    return transports.client(guard, {}, httpx2.Timeout(SECONDS))


async def _fetched(http: httpx2.AsyncClient, request: httpx2.Request) -> httpx2.Response:
    """Return an answer with its body, up to the maximum size. Redirects are not followed."""
    request.headers["accept-encoding"] = "identity"
    async with asyncio.timeout(SECONDS):
        response = await http.send(request, stream=True)
        try:
            content = b""
            async for part in response.aiter_bytes():
                content += part
                if len(content) > MAX_BYTES:
                    raise auth.OAuthFlowError(
                        f"the answer of {request.url.host} has more than {MAX_BYTES} bytes."
                    )
        finally:
            await response.aclose()
    return httpx2.Response(
        response.status_code, headers=response.headers, content=content, request=response.request
    )
