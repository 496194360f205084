"""An OpenID Connect provider on loopback, for tests: Authlib's server, which logs in whomever a test names.

It checks the client's secret and address, codes and PKCE, and signs its ID tokens. Tests change what it says.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import flask
from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import grants
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oidc.core.grants import OpenIDCode
from joserfc import jwk
from werkzeug import serving

CLIENT_ID, CLIENT_SECRET = "toolbelt", "not-for-others-to-know"
CALLBACK = "http://testserver/login/provider/callback/"


@dataclass(kw_only=True)
class Provider:
    """The provider: ``person`` is who logs in there, by claims, and ``userinfo`` what only its second answer has.

    ``forged`` are claims of the ID token that replace the right ones. ``key`` signs, and ``keys``
    are published.
    """

    issuer: str = ""
    person: dict[str, Any] = field(default_factory=lambda: {"sub": "1"})
    userinfo: dict[str, Any] = field(default_factory=dict)
    forged: dict[str, Any] = field(default_factory=dict)
    document: dict[str, Any] = field(default_factory=dict)
    answer: dict[str, str] = field(default_factory=dict)
    asked: dict[str, str] = field(default_factory=dict)
    codes: dict[str, Any] = field(default_factory=dict)
    tokens: set[str] = field(default_factory=set)
    key: Any = None
    keys: list[Any] = field(default_factory=list)

    def rotate(self) -> None:
        """Sign with a new key, and forget the old one."""
        self.key = jwk.RSAKey.generate_key(2048, {"kid": secrets.token_hex(4), "use": "sig", "alg": "RS256"})
        self.keys = [self.key]

    def metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "jwks_uri": f"{self.issuer}/keys",
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
            **self.document,
        }


class Client:
    """Toolbelt, as the provider knows it."""

    def get_client_id(self) -> str:
        return CLIENT_ID

    def get_allowed_scope(self, scope: str) -> str:
        return scope

    def check_redirect_uri(self, address: str) -> bool:
        return address == CALLBACK

    def check_client_secret(self, secret: str) -> bool:
        return secret == CLIENT_SECRET

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return method == "client_secret_post"

    def check_response_type(self, kind: str) -> bool:
        return kind == "code"

    def check_grant_type(self, kind: str) -> bool:
        return kind == "authorization_code"


def _grants(provider: Provider) -> tuple[type, Any]:
    """Return the grant of codes, and its ID tokens."""

    class Codes(grants.AuthorizationCodeGrant):  # type: ignore[misc]
        TOKEN_ENDPOINT_AUTH_METHODS = ["client_secret_post"]

        def save_authorization_code(self, code: str, request: Any) -> None:
            sent = request.payload.data
            provider.codes[code] = SimpleNamespace(
                code=code,
                code_challenge=sent.get("code_challenge"),
                code_challenge_method=sent.get("code_challenge_method"),
                get_redirect_uri=lambda: request.payload.redirect_uri,
                get_scope=lambda: request.scope,
                get_nonce=lambda: sent.get("nonce"),
                get_auth_time=lambda: None,
                get_acr=lambda: None,
                get_amr=lambda: None,
            )

        def query_authorization_code(self, code: str, client: Client) -> Any:
            return provider.codes.get(code)

        def delete_authorization_code(self, code: Any) -> None:
            del provider.codes[code.code]

        def authenticate_user(self, code: Any) -> dict[str, Any]:
            return provider.person

    class Tokens(OpenIDCode):  # type: ignore[misc]
        def exists_nonce(self, nonce: str, request: Any) -> bool:
            return False

        def resolve_client_private_key(self, client: Client) -> Any:
            return provider.key

        def get_encode_header(self, client: Client) -> dict[str, str]:
            return {"alg": "RS256", "kid": provider.key.kid}

        def get_client_claims(self, client: Client) -> dict[str, Any]:
            return {"iss": provider.issuer}

        def generate_user_info(self, user: dict[str, Any], scope: str) -> dict[str, Any]:
            # The library writes these over its own claims.
            return {**user, **provider.forged}

    return Codes, Tokens(require_nonce=True)


def application(provider: Provider) -> flask.Flask:
    """Return the provider's pages."""
    app = flask.Flask(__name__)
    server = AuthorizationServer()
    server.init_app(
        app,
        query_client=lambda name: Client() if name == CLIENT_ID else None,
        save_token=lambda token, request: provider.tokens.add(token["access_token"]),
    )
    codes, tokens = _grants(provider)
    server.register_grant(codes, [tokens, CodeChallenge(required=True)])

    @app.get("/authorize")
    def authorize() -> Any:
        provider.asked = dict(flask.request.args)
        if provider.answer:
            sent = {"state": flask.request.args["state"], **provider.answer}
            return flask.redirect(f"{CALLBACK}?{'&'.join(f'{name}={value}' for name, value in sent.items())}")
        grant = server.get_consent_grant(end_user=provider.person)
        return server.create_authorization_response(grant_user=provider.person, grant=grant)

    @app.post("/token")
    def token() -> Any:
        return server.create_token_response()

    @app.get("/userinfo")
    def userinfo() -> Any:
        if flask.request.headers["Authorization"].removeprefix("Bearer ") not in provider.tokens:
            return {"error": "invalid_token"}, 401
        return {**provider.person, **provider.userinfo}

    @app.get("/keys")
    def keys() -> Any:
        return {"keys": [key.as_dict(private=False) for key in provider.keys]}

    @app.get("/.well-known/openid-configuration")
    def configuration() -> Any:
        return provider.metadata()

    return app


@contextmanager
def serving_provider() -> Iterator[Provider]:
    """Serve a provider during the block."""
    provider = Provider()
    provider.rotate()
    server = serving.make_server("127.0.0.1", 0, application(provider), threaded=True)
    provider.issuer = f"http://127.0.0.1:{server.port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
