"""The provider with which operators log in (OpenID Connect): what is asked of it, and what is believed.

django-allauth keeps the state of a login, sends PKCE and exchanges the code. It believes an ID token for the connection
that it came over, and what the provider says of itself; here, the token's signature, issuer, audience and nonce are
checked as well. Only :mod:`toolbelt.web.login.views` imports this module, if there is a provider.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import hmac
from collections.abc import Mapping
from typing import Any, NoReturn

import jwt
import requests
import structlog
from allauth.core import exceptions
from allauth.socialaccount import adapter
from allauth.socialaccount import models as library
from allauth.socialaccount.providers.base import AuthError
from allauth.socialaccount.providers.oauth2 import views as oauth2
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.openid_connect import provider, views
from django.contrib import auth
from django.http import HttpResponse
from django.shortcuts import redirect, resolve_url
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme

from toolbelt import conf
from toolbelt.control.people import sign_in
from toolbelt.core import errors
from toolbelt.web.kit import http
from toolbelt.web.login import refusals, second_factor

BACKEND = "toolbelt.web.login.backends.ProviderBackend"
# How long a login lasts, in seconds: the provider is asked again each day whether the person still has their groups.
SESSION_SECONDS = 12 * 3600
# Signatures with a secret that the provider shares are left out: a public key must not count as one.
_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_REQUIRED = ("aud", "exp", "iat", "iss", "nonce", "sub")
# How far the clocks of two machines may differ, in seconds.
_LEEWAY = 60
_FAILED = (OAuth2Error, requests.RequestException, KeyError, TypeError, AttributeError, ValueError)
_log = structlog.get_logger(__name__)


class Questions(views.OpenIDConnectOAuth2Adapter):  # type: ignore[misc]
    """What is asked of the provider, and checked of its answers."""

    @property
    def openid_config(self) -> Any:
        """Return what the provider says of itself. Raise OAuth2Error if it is another one."""
        document = super().openid_config
        if document["issuer"] != conf.SIGN_IN_ISSUER:
            raise OAuth2Error(f"The provider says that its issuer is {document['issuer']!r}")
        return document

    def get_callback_url(self, request: http.Request, app: Any) -> str:
        """Return the address at which people come back."""
        return request.build_absolute_uri(reverse("web:provider_callback"))

    def complete_login(self, request: http.Request, app: Any, token: Any, **answer: Any) -> Any:
        """Return who logs in."""
        claims = self._verified(answer["response"].get("id_token", ""))
        if "email" not in claims or conf.SIGN_IN_GROUPS_CLAIM not in claims:
            if "email" not in claims:
                # Whether an address is verified is said of the address beside it.
                claims.pop("email_verified", None)
            claims = {**self._asked(token.token, claims), **claims}
        login = self.get_provider().sociallogin_from_response(request, claims)
        login.claims = claims
        return login

    def _verified(self, id_token: str) -> dict[str, Any]:
        """Return the claims of an ID token. Raise OAuth2Error if it is not one of this provider's for Toolbelt."""
        try:
            # The keys are read each time, so that they may be replaced at any time.
            keys = jwt.PyJWKClient(self.openid_config["jwks_uri"], timeout=5)
            claims: dict[str, Any] = jwt.decode(
                id_token,
                keys.get_signing_key_from_jwt(id_token),
                algorithms=_ALGORITHMS,
                audience=conf.SIGN_IN_CLIENT_ID,
                issuer=conf.SIGN_IN_ISSUER,
                leeway=_LEEWAY,
                options={"require": list(_REQUIRED)},
            )
        except jwt.PyJWTError as error:
            raise OAuth2Error(f"The ID token is not valid: {error}") from error
        if claims.get("azp", conf.SIGN_IN_CLIENT_ID) != conf.SIGN_IN_CLIENT_ID:
            raise OAuth2Error("The ID token is for another application")
        return claims

    def _asked(self, token: str, claims: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the provider adds to the claims of an ID token, about the same person."""
        if "userinfo_endpoint" not in self.openid_config:
            return {}
        with adapter.get_adapter().get_requests_session() as session:
            answer = session.get(self.profile_url, headers={"Authorization": f"Bearer {token}"})
            answer.raise_for_status()
            stated: dict[str, Any] = answer.json()
        if stated.get("sub") != claims["sub"]:
            raise OAuth2Error("The provider answered about another person")
        if "email" in claims:
            # Whether an address is verified is said of the address beside it.
            stated.pop("email_verified", None)
        return stated


class Provider(provider.OpenIDConnectProvider):  # type: ignore[misc]
    """The provider of the settings."""

    oauth2_adapter_class = Questions

    @property
    def server_url(self) -> str:
        """Return where the provider says what it is. Some issuers end in a slash."""
        return f"{conf.SIGN_IN_ISSUER.rstrip('/')}/.well-known/openid-configuration"

    def extract_uid(self, data: Mapping[str, Any]) -> str:
        """Return who this is, for good: another issuer's subject of the same name is another person."""
        return hashlib.sha256(f"{data['iss']}\n{data['sub']}".encode()).hexdigest()

    def extract_extra_data(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Store no claims."""
        return {}


class Adapter(adapter.DefaultSocialAccountAdapter):  # type: ignore[misc]
    """The library's questions to this installation. Apps that its table may hold are not read."""

    def get_provider(self, request: http.Request, provider: str, client_id: str | None = None) -> Provider:
        """Return the provider of the settings."""
        app = library.SocialApp(
            provider=Provider.id,
            provider_id=sign_in.PROVIDER,
            name=conf.SIGN_IN_NAME,
            client_id=conf.SIGN_IN_CLIENT_ID,
            secret=conf.SIGN_IN_CLIENT_SECRET,
            settings={"oauth_pkce_enabled": True, "scope": list(conf.SIGN_IN_SCOPES)},
        )
        return Provider(request, app=app)

    def pre_social_login(self, request: http.Request, sociallogin: Any) -> NoReturn:
        """Log a person in, or say why not. The library's own ways to an account end here."""
        nonce = sociallogin.state.get("nonce") or ""
        if not hmac.compare_digest(str(sociallogin.claims["nonce"]).encode(), nonce.encode()):
            raise OAuth2Error("The ID token is the answer to another login")
        try:
            user = sign_in.admit(_identity(sociallogin.account.uid, sociallogin.claims))
        except errors.Refused as error:
            _log.warning("login_refused", reason=str(error))
            raise exceptions.ImmediateHttpResponse(refusals.show(request, str(error), 403)) from error
        auth.login(request, user, backend=BACKEND)
        second_factor.confirm(request)
        # A fixed time: each change of the session would start a number of seconds again.
        request.session.set_expiry(timezone.now() + dt.timedelta(seconds=SESSION_SECONDS))
        raise exceptions.ImmediateHttpResponse(redirect(_next(request, sociallogin.state.get("next"))))

    def on_authentication_error(
        self,
        request: http.Request,
        provider: Any,
        error: str = AuthError.UNKNOWN,
        exception: Exception | None = None,
        extra_context: dict[str, Any] | None = None,
    ) -> NoReturn:
        """Show the login page with what to do."""
        raise exceptions.ImmediateHttpResponse(failed(request, exception, error == AuthError.CANCELLED))


def begin(request: http.Request, nonce: str) -> HttpResponse:
    """Lead a person to the provider."""
    asked = adapter.get_adapter(request).get_provider(request, sign_in.PROVIDER)
    try:
        response: HttpResponse = asked.redirect(
            request,
            "login",
            next_url=request.GET.get("next"),
            auth_params={"nonce": nonce},
            scope=asked.get_scope(),
            nonce=nonce,
        )
    except _FAILED as error:
        return failed(request, error)
    return response


def complete(request: http.Request) -> HttpResponse:
    """Answer a person who comes back from the provider."""
    if request.GET.get("iss", conf.SIGN_IN_ISSUER) != conf.SIGN_IN_ISSUER:
        return failed(request, OAuth2Error("Another provider answered"))
    try:
        view = oauth2.OAuth2CallbackView.adapter_view(Questions(request, sign_in.PROVIDER))
        response: HttpResponse = view(request)
    except _FAILED as error:
        return failed(request, error)
    return response


def failed(request: http.Request, error: Exception | None, is_cancelled: bool = False) -> HttpResponse:
    """Show the login page again. Only the log has what the provider answered."""
    if is_cancelled:
        return refusals.show(request, f"The login with {conf.SIGN_IN_NAME} was canceled.", 403)
    if error is None and "error" in request.GET:
        error = OAuth2Error(f"The provider answered {request.GET['error']!r}")
    if error is None:
        text = (
            f"The login with {conf.SIGN_IN_NAME} has expired, or was begun in another browser. Log in again."
        )
        return refusals.show(request, text, 403)
    _log.warning("login_failed", error=f"{type(error).__name__}: {error}"[:300])
    text = f"The login with {conf.SIGN_IN_NAME} failed. Try again. The log of the server says why."
    return refusals.show(request, text, 502)


def _identity(uid: str, claims: Mapping[str, Any]) -> sign_in.Identity:
    """Return a person by the claims about them."""
    email = _text(claims, "email")
    return sign_in.Identity(
        uid=uid,
        name=_text(claims, "preferred_username") or email or _text(claims, "sub"),
        full_name=_text(claims, "name"),
        email=email,
        # Some providers send it as a text.
        is_verified=str(claims.get("email_verified")).lower() == "true",
        roles=sign_in.roles_of(claims, conf.SIGN_IN_GROUPS_CLAIM, conf.SIGN_IN_ROLES),
    )


def _text(claims: Mapping[str, Any], name: str) -> str:
    value = claims.get(name)
    return value.strip() if isinstance(value, str) else ""


def _next(request: http.Request, address: str | None) -> str:
    """Return the page to which a person returns: of this site only."""
    hosts = {request.get_host()}
    if address and url_has_allowed_host_and_scheme(address, hosts, require_https=request.is_secure()):
        return address
    return resolve_url("web:home")
