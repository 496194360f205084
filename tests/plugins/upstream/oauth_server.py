"""An MCP server that wants OAuth, and its authorization server: those of the official SDK, with tokens in memory.

Its access tokens live for ``seconds``. Each refresh token is used once: one that is used again ends the whole grant.
"""

from __future__ import annotations

import contextlib
import secrets
import socket
import threading
import time
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from mcp.server import MCPServer
from mcp.server.auth import provider, settings
from mcp.server.auth.middleware import auth_context
from mcp.server.auth.settings import ClientRegistrationOptions, RevocationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

SCOPE, MORE = "notes", "notes:write"


@dataclass(kw_only=True)
class State:
    """What the server knows, and what a test changes of its behaviour. Times are those of the machine."""

    seconds: int = 3600
    iss: str | None = None
    authorize_error: str = ""
    refuses_refresh: str = ""
    is_down: bool = False
    refuses_revocation: bool = False
    refuses_access: bool = False
    demanded: str = ""
    rotates: bool = True
    registrations: int = 0
    refreshes: list[float] = field(default_factory=list)
    token_requests: int = 0
    calls: int = 0
    callers: list[str] = field(default_factory=list)
    clients: dict[str, OAuthClientInformationFull] = field(default_factory=dict)
    codes: dict[str, provider.AuthorizationCode] = field(default_factory=dict)
    access: dict[str, provider.AccessToken] = field(default_factory=dict)
    refresh: dict[str, provider.RefreshToken] = field(default_factory=dict)
    resources: dict[str, str | None] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    issued: list[str] = field(default_factory=list)

    def revoke(self) -> None:
        """End every grant, as the account's owner does on a page of the server."""
        self.access.clear()
        self.refresh.clear()


class _Provider(
    provider.OAuthAuthorizationServerProvider[
        provider.AuthorizationCode, provider.RefreshToken, provider.AccessToken
    ]
):
    """Answers each authorization at once, as a person does who is logged in and agrees."""

    def __init__(self, state: State, issuer: str) -> None:
        self.state, self.issuer = state, issuer

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.state.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.state.registrations += 1
        assert client_info.client_id is not None
        self.state.clients[client_info.client_id] = client_info

    async def authorize(
        self, client: OAuthClientInformationFull, params: provider.AuthorizationParams
    ) -> str:
        answer: dict[str, str | None] = {"state": params.state, "iss": self.state.iss}
        if self.state.authorize_error:
            answer["error"] = self.state.authorize_error
        else:
            answer["code"] = code = self._new("code")
            self.state.codes[code] = provider.AuthorizationCode(
                code=code,
                scopes=params.scopes or [SCOPE],
                expires_at=time.time() + 60,
                client_id=client.client_id or "",
                code_challenge=params.code_challenge,
                redirect_uri=params.redirect_uri,
                redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
                resource=params.resource,
            )
        return provider.construct_redirect_uri(str(params.redirect_uri), **answer)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> provider.AuthorizationCode | None:
        return self.state.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: provider.AuthorizationCode
    ) -> OAuthToken:
        del self.state.codes[authorization_code.code]
        return self._issue(client, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> provider.RefreshToken | None:
        if refresh_token in self.state.used:
            self.state.revoke()
        return self.state.refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: provider.RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        self.state.refreshes.append(time.time())
        resource = self.state.resources[refresh_token.token]
        if not self.state.rotates:
            return self._issue(client, scopes, resource).model_copy(update={"refresh_token": None})
        del self.state.refresh[refresh_token.token]
        self.state.used.add(refresh_token.token)
        return self._issue(client, scopes, resource)

    async def load_access_token(self, token: str) -> provider.AccessToken | None:
        found = None if self.state.refuses_access else self.state.access.get(token)
        return found if found is not None and (found.expires_at or 0) > time.time() else None

    async def revoke_token(self, token: provider.AccessToken | provider.RefreshToken) -> None:
        self.state.access.pop(token.token, None)
        self.state.refresh.pop(token.token, None)

    def _issue(
        self, client: OAuthClientInformationFull, scopes: list[str], resource: str | None
    ) -> OAuthToken:
        access, refresh = self._new("access"), self._new("refresh")
        by = client.client_id or ""
        # In whole seconds, as the SDK has it: at least as long as it states.
        expires = int(time.time()) + self.state.seconds + 1
        self.state.access[access] = provider.AccessToken(
            token=access, client_id=by, scopes=scopes, expires_at=expires, resource=resource
        )
        self.state.resources[refresh] = resource
        self.state.refresh[refresh] = provider.RefreshToken(token=refresh, client_id=by, scopes=scopes)
        return OAuthToken(
            access_token=access, refresh_token=refresh, expires_in=self.state.seconds, scope=" ".join(scopes)
        )

    def _new(self, kind: str) -> str:
        token = f"{kind}_{secrets.token_hex(16)}"
        self.state.issued.append(token)
        return token


@dataclass(frozen=True, kw_only=True)
class Running:
    """The running server: its address ``url``, the ``issuer``, and its ``state``."""

    url: str
    issuer: str
    state: State


@contextlib.contextmanager
def running(**options: Any) -> Iterator[Running]:
    """Run the server on this machine, in a thread."""
    state = State(**options)
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as listening:
        issuer = f"http://127.0.0.1:{listening.getsockname()[1]}"
        server = uvicorn.Server(uvicorn.Config(_application(state, issuer), log_level="error", lifespan="on"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield Running(url=f"{issuer}/mcp", issuer=issuer, state=state)
        finally:
            server.should_exit = True
            thread.join(10)


def _application(state: State, issuer: str) -> Any:
    made = _Provider(state, issuer)
    server = MCPServer(
        "notes",
        auth_server_provider=made,
        auth=settings.AuthSettings(
            issuer_url=AnyHttpUrl(issuer),
            resource_server_url=AnyHttpUrl(f"{issuer}/mcp"),
            required_scopes=[SCOPE],
            validate_token_resource=True,
            client_registration_options=ClientRegistrationOptions(enabled=True, valid_scopes=[SCOPE, MORE]),
            revocation_options=RevocationOptions(enabled=True),
        ),
    )

    @server.tool()
    def note(text: str) -> str:
        """Keep a note."""
        state.calls += 1
        token = auth_context.get_access_token()
        state.callers.append(token.client_id if token is not None else "")
        return f"kept {text}"

    inner = server.streamable_http_app(stateless_http=True, json_response=True)

    async def application(scope: Any, receive: Any, send: Any) -> None:
        if state.demanded and scope["type"] == "http" and scope["path"] == "/mcp":
            receive, refusal = await _demanding(state, scope, receive)
            if refusal is not None:
                await refusal(scope, receive, send)
                return
        if scope["type"] != "http" or scope["path"] not in ("/token", "/revoke"):
            await inner(scope, receive, send)
            return
        body = await Request(scope, receive).body()
        if scope["path"] == "/revoke" and state.refuses_revocation:
            await Response("down", 503)(scope, receive, send)
            return
        if scope["path"] == "/revoke":
            # The SDK demands the field, also of clients without a secret.
            body += b"&client_secret="
        elif answer := _odd(state, dict(urllib.parse.parse_qsl(body.decode()))):
            await answer(scope, receive, send)
            return
        await inner(scope, _again(body, receive), send)

    return application


def _again(body: bytes, receive: Any) -> Any:
    """Return what receives a body that was read."""
    messages = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def again() -> Any:
        return next(messages, None) or await receive()

    return again


async def _demanding(state: State, scope: Any, receive: Any) -> tuple[Any, Response | None]:
    """Return what receives the body of a request, and the answer to a call whose token lacks a scope."""
    request = Request(scope, receive)
    body = await request.body()
    token = state.access.get(request.headers.get("authorization", "").removeprefix("Bearer "))
    lacks = token is not None and not {*state.demanded.split()} <= {*token.scopes}
    if not lacks or b"tools/call" not in body:
        return _again(body, receive), None
    said = f'Bearer error="insufficient_scope", scope="{SCOPE} {state.demanded}", error_description="more"'
    return _again(body, receive), Response("no", 403, headers={"www-authenticate": said})


def _odd(state: State, form: dict[str, str]) -> Response | None:
    """Return the answer of a token endpoint that a test has broken; None if it works."""
    state.token_requests += 1
    if state.is_down:
        return Response("down", 503)
    if state.refuses_refresh and form["grant_type"] == "refresh_token":
        error = {"error": state.refuses_refresh, "error_description": f"not {form['refresh_token']}"}
        return JSONResponse(error, 400)
    return None
