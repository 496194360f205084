"""The page on which a person lets a client act as an agent (RFC 6749, 4.1.1), and the way back to the client.

It is shown each time: what a client asks for in its address cannot skip it. No address of a client is opened before the
person has decided, so that a link to this server leads nowhere else.
"""

from __future__ import annotations

import urllib.parse
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import BadRequest
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.encoding import iri_to_uri
from django.views.decorators.http import require_http_methods
from oauth2_provider import exceptions
from oauth2_provider import models as oauth
from oauth2_provider.views import mixins
from oauthlib.oauth2.rfc6749 import errors as oauth_errors

from toolbelt.control.people import client_connections, rights, sign_in_attempts
from toolbelt.core import addresses, agent_addresses, errors
from toolbelt.oauth import metadata, registration, validator
from toolbelt.web.kit import http, pieces, responses

# What the page of a failed request says, by its error code: what to do.
_WAYS_OUT = {
    "invalid_request": "The client must send a PKCE challenge with the method S256. Update the client, or connect it"
    " with a token.",
    "invalid_target": "The client must send the agent's address as its resource, exactly as it is on the agent's"
    " Connect page. Remove the server from the client and add it with that address.",
    "invalid_client_id": "Remove the server from the client and add it again, so that it registers again. A client that"
    " no one connects is forgotten after a day.",
    "mismatching_redirect_uri": "The client asks to be sent back to an address that it has not registered. Remove the"
    " server from the client and add it again.",
}
_UPDATE = "Update the client, or connect it with a token."


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a client asks for, checked: ``parameters`` are those of its request."""

    application: Any
    agent: str
    parameters: dict[str, Any]

    @property
    def client(self) -> str:
        """Return the name that the client gave itself."""
        return self.application.name or sign_in_attempts.NAMELESS

    @property
    def redirect_host(self) -> str:
        """Return where the person is sent back, as the page names it."""
        parts = urllib.parse.urlsplit(self.parameters["redirect_uri"])
        host = parts.hostname or ""
        if parts.scheme not in ("http", "https"):
            return f"{parts.scheme}:{f'//{host}' if host else ''}"
        return host

    @property
    def is_on_this_machine(self) -> bool:
        """Return whether the person is sent back to a program on their own machine."""
        parts = urllib.parse.urlsplit(self.parameters["redirect_uri"])
        return parts.scheme not in ("http", "https") or addresses.is_this_machine(parts.hostname or "")


class _Consent(pieces.Page):
    """The question."""

    def __init__(self, asked: Asked, agent: Any) -> None:
        self.client = asked.client
        self.agent = agent
        self.redirect_host = asked.redirect_host
        self.is_on_this_machine = asked.is_on_this_machine


class _Outcome(pieces.Page):
    """What happened, and the address ``back`` to the client; empty if it is not to be trusted."""

    def __init__(
        self, title: str, *, client: str = "", back: str = "", why: str = "", way_out: str = ""
    ) -> None:
        self.title, self.client, self.back, self.why, self.way_out = title, client, back, why, way_out


@require_http_methods(["GET", "POST"])
def authorize(request: http.Request) -> HttpResponse:
    """Ask whether a client may act as an agent, or send the person back to the client with the answer."""
    if registration.has_nul(request):
        raise BadRequest("A parameter contains NUL.")
    try:
        asked = _read(request)
    except exceptions.OAuthToolkitError as error:
        return _failed(request, error)
    try:
        agent = client_connections.usable_agent(asked.agent)
    except errors.NotFound as error:
        return _refused(request, asked, "There is no such agent", str(error), 404)
    if not rights.may_use(request.user, asked.agent):
        why = (
            f"You may not use {asked.agent} with clients that sign in. An administrator can give you the role operator,"
            " or name you among the operators of this agent."
        )
        return _refused(request, asked, "Not permitted", why, 403)
    if request.method == "POST":
        return _decide(request, asked)
    _note(request, asked, "login")
    return render(request, "oauth/consent.html", {"page": _Consent(asked, agent)})


def _decide(request: http.Request, asked: Asked) -> HttpResponse:
    if "allow" not in request.POST:
        sign_in_attempts.failed(
            asked.application.pk,
            asked.agent,
            "the person's answer",
            "access_denied",
            "They did not allow it.",
        )
        return _back(request, asked, _denied(request, asked), "Not connected")
    core = mixins.OAuthLibMixin.get_oauthlib_core()
    with transaction.atomic():
        client_connections.allow(
            responses.write(request),
            application=asked.application.pk,
            user=request.user,
            agent=asked.agent,
            client=asked.client,
            redirect_host=asked.redirect_host,
        )
        parameters = {**asked.parameters, "resource": [asked.parameters["resource"]]}
        uri, _, _, _ = core.create_authorization_response(request, [*metadata.SCOPES], parameters, allow=True)
    _note(request, asked, "consent")
    return _back(request, asked, uri, "Connected")


def _read(request: HttpRequest) -> Asked:
    """Return what a client asks for. Raise OAuthToolkitError, which is fatal if its redirect is not to be trusted."""
    core = mixins.OAuthLibMixin.get_oauthlib_core()
    _, parameters = core.validate_authorization_request(request)
    names = ("client_id", "redirect_uri", "response_type", "state", "code_challenge", "code_challenge_method")
    kept = {name: parameters[name] for name in names if parameters.get(name) is not None}
    oauth_request = parameters["request"]
    if kept["response_type"] != "code":
        raise exceptions.OAuthToolkitError(oauth_errors.UnsupportedResponseTypeError(request=oauth_request))
    if kept["code_challenge_method"] != "S256":
        raise exceptions.OAuthToolkitError(
            oauth_errors.InvalidRequestError(
                description='The PKCE code_challenge_method must be "S256".', request=oauth_request
            )
        )
    resources = request.GET.getlist("resource")
    agent = agent_addresses.agent_of(resources[0], metadata.origin(request)) if len(resources) == 1 else ""
    if not agent:
        raise exceptions.OAuthToolkitError(
            validator.InvalidTargetError(
                description=f"The resource must be one agent's address, such as {metadata.origin(request)}/mcp/AGENT.",
                request=oauth_request,
            )
        )
    return Asked(application=oauth_request.client, agent=agent, parameters={**kept, "resource": resources[0]})


def _failed(request: http.Request, error: exceptions.OAuthToolkitError) -> HttpResponse:
    """Return the page of a request that is not valid; its client is named only if its redirect is to be trusted."""
    fault = error.oauthlib_error
    application = oauth.Application.objects.filter(client_id=request.GET.get("client_id", "")).first()
    if application is not None:
        resource = request.GET.get("resource", "")
        sign_in_attempts.failed(
            application.pk,
            agent_addresses.agent_of(resource, metadata.origin(request)),
            f"GET {request.path}",
            fault.error,
            fault.description,
            request.META["REMOTE_ADDR"],
        )
    kind = type(fault).__name__.removesuffix("Error")
    named = {"InvalidClientId": "invalid_client_id", "MismatchingRedirectURI": "mismatching_redirect_uri"}
    is_fatal = isinstance(error, exceptions.FatalClientError)
    page = _Outcome(
        "This client cannot be connected",
        client=application.name if application is not None and not is_fatal else "",
        back="" if is_fatal or not fault.redirect_uri else fault.in_uri(fault.redirect_uri),
        why=fault.description or fault.error,
        way_out=_WAYS_OUT.get(named.get(kind, fault.error), _UPDATE),
    )
    return render(request, "oauth/refused.html", {"page": page}, status=400)


def _refused(request: http.Request, asked: Asked, title: str, why: str, status: int) -> HttpResponse:
    """Return the page of a request that this person may not grant."""
    sign_in_attempts.failed(
        asked.application.pk,
        asked.agent if status == 403 else "",
        f"{request.method} {request.path}",
        "access_denied",
        why,
        request.META["REMOTE_ADDR"],
    )
    page = _Outcome(title, client=asked.client, back=_denied(request, asked), why=why)
    return render(request, "oauth/refused.html", {"page": page}, status=status)


def _back(request: http.Request, asked: Asked, uri: str, title: str) -> HttpResponse:
    """Return the page that leads back to the client. It is no redirect: browsers hold the redirects of a form's answer
    to the addresses that a page may send forms to, and the client's own redirects are not known.
    """
    response = render(request, "oauth/back.html", {"page": _Outcome(title, client=asked.client, back=uri)})
    response.headers["Refresh"] = f"0; url={iri_to_uri(uri)}"
    response.headers["Cache-Control"] = "no-store"
    return response


def _denied(request: HttpRequest, asked: Asked) -> str:
    """Return the address that tells the client that the person did not allow it."""
    answer = {"error": "access_denied", "iss": metadata.origin(request)}
    if state := asked.parameters.get("state"):
        answer["state"] = state
    uri = asked.parameters["redirect_uri"]
    return f"{uri}{'&' if '?' in uri else '?'}{urllib.parse.urlencode(answer)}"


def _note(request: HttpRequest, asked: Asked, step: sign_in_attempts.Step) -> None:
    sign_in_attempts.reached(asked.application.pk, asked.agent, step, request.META["REMOTE_ADDR"])
