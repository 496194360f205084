"""Dynamic registration of clients (RFC 7591), open to anyone: a registered client can do nothing without a person.

Every client is public: it proves with PKCE that it asked for a code, and has no secret. What it asks for beyond that
(other grants, other ways to authenticate) is replaced by what it gets, as the response says (RFC 7591, 3.2.1).
"""

from __future__ import annotations

import math
import urllib.parse
from typing import Annotated, Any

import pydantic
from django.contrib.auth import decorators
from django.core import exceptions
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators import csrf
from django.views.decorators.http import require_POST
from oauth2_provider import models as oauth

from toolbelt.api import limits
from toolbelt.control.people import sign_in_attempts
from toolbelt.core import addresses, strict_json
from toolbelt.core.imported import cleaning
from toolbelt.oauth import metadata

MAX_REDIRECTS, MAX_REDIRECT_LENGTH, MAX_NAME_LENGTH = 10, 1000, 100
MAX_DEPTH = 16


class Client(pydantic.BaseModel):
    """What is used of a client's own metadata."""

    redirect_uris: Annotated[
        list[Annotated[str, pydantic.Field(max_length=MAX_REDIRECT_LENGTH)]],
        pydantic.Field(min_length=1, max_length=MAX_REDIRECTS),
    ]
    client_name: str = ""
    grant_types: list[str] = pydantic.Field(default_factory=lambda: ["authorization_code"])


@decorators.login_not_required
@csrf.csrf_exempt
@require_POST
def register(request: HttpRequest) -> HttpResponse:
    """Register a client, and return what it may do."""
    address = request.META["REMOTE_ADDR"]
    if wait := limits.rates.take(f"registration {address}", metadata.PER_MINUTE):
        seconds = math.ceil(wait)
        return refusal(
            "temporarily_unavailable",
            f"An address may register {metadata.PER_MINUTE} clients a minute: wait {seconds} s.",
            status=429,
            headers={"Retry-After": str(seconds)},
        )
    try:
        sent = Client.model_validate(strict_json.read(request.body, MAX_DEPTH))
    except strict_json.UnreadableError as error:
        return refusal("invalid_client_metadata", str(error))
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the document"
        code = "invalid_redirect_uri" if where.startswith("redirect_uris") else "invalid_client_metadata"
        return refusal(code, f"{where}: {first['msg']}")
    if "authorization_code" not in sent.grant_types:
        return refusal(
            "invalid_client_metadata",
            "grant_types must contain authorization_code: Toolbelt has no other grant.",
        )
    for uri in sent.redirect_uris:
        if problem := redirect_problem(uri):
            return refusal("invalid_redirect_uri", problem)
    application = new_application(shown_name(sent.client_name), sent.redirect_uris)
    try:
        application.full_clean()
    except exceptions.ValidationError as error:
        return refusal("invalid_redirect_uri", " ".join(error.messages)[:300])
    application.save()
    sign_in_attempts.registered(application, address)
    return JsonResponse(_registered(application, sent), status=201, headers={"Cache-Control": "no-store"})


def new_application(name: str, redirect_uris: list[str]) -> Any:
    """Return the row of a public client, which is not stored yet. It has no secret, so there is none to hash."""
    return oauth.Application(
        name=name,
        redirect_uris=" ".join(redirect_uris),
        client_type=oauth.Application.CLIENT_PUBLIC,
        authorization_grant_type=oauth.Application.GRANT_AUTHORIZATION_CODE,
        registration_source=oauth.Application.RegistrationSource.DCR,
        client_secret="",
        hash_client_secret=False,
    )


def shown_name(name: str) -> str:
    """Return the name of a client as people are shown it: one line, without hidden characters."""
    return " ".join(cleaning.escape_hidden(name).split())[:MAX_NAME_LENGTH]


def redirect_problem(uri: str) -> str:
    """Return why a client may not send people to this address; empty if it may.

    An http address is refused unless it is the person's own machine (RFC 8252, 7.3). The library checks the rest.
    """
    try:
        parts = urllib.parse.urlsplit(uri)
        host = parts.hostname or ""
    except ValueError:
        return f"{uri[:100]} is not an address."
    if not uri.isprintable() or " " in uri:
        return "An address has no spaces and no control characters."
    if parts.scheme == "http" and not addresses.is_this_machine(host):
        return f"{uri[:100]}: use https. Only addresses of the person's own machine may use http."
    return ""


def _registered(application: Any, sent: Client) -> dict[str, Any]:
    return {
        "client_id": application.client_id,
        "client_id_issued_at": int(application.created.timestamp()),
        "client_name": application.name,
        "redirect_uris": sent.redirect_uris,
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "scope": " ".join(metadata.SCOPES),
    }


def has_nul(request: HttpRequest) -> bool:
    """Return whether a parameter contains NUL, which no database of text takes."""
    sent = [values for fields in (request.GET, request.POST) for _, values in fields.lists()]
    return any("\x00" in value for values in sent for value in values)


def refusal(
    error: str, description: str, status: int = 400, headers: dict[str, str] | None = None
) -> JsonResponse:
    """Return an error in the form of OAuth."""
    return JsonResponse({"error": error, "error_description": description}, status=status, headers=headers)
