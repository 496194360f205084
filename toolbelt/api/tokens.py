"""Listing, issuing and revoking API tokens."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Any

import ninja
import pydantic
from django.http import HttpRequest
from django.utils import timezone

from toolbelt.api import auth, names, paging, problems, schemas
from toolbelt.control.people import rights, tokens

router = ninja.Router(tags=["tokens"])


class ApiToken(ninja.Schema):
    """An API token of an agent or of an operator, without its secret."""

    prefix: Annotated[str, pydantic.Field(description="The beginning of the token, which identifies it.")]
    name: str
    agent: Annotated[str, pydantic.Field(description="Empty for an operator's token.")]
    operator: Annotated[str, pydantic.Field(description="Empty for an agent's token.")]
    scope: Annotated[str, pydantic.Field(description="read or write, for an operator's token.")]
    created: dt.datetime
    expires: dt.datetime | None
    revoked: dt.datetime | None
    last_used: dt.datetime | None
    issued_by: Annotated[
        str, pydantic.Field(description="Who issued it, as in the audit log. Empty: not known.")
    ]
    rejection: Annotated[
        tokens.Rejection,
        pydantic.Field(
            description="Why requests with it are rejected: it was revoked, it expired, its agent is archived, or its"
            " operator is deactivated. Empty: it is valid."
        ),
    ]


class IssuedToken(ninja.Schema):
    """A new token."""

    text: Annotated[
        str, pydantic.Field(description="The token itself. It is not stored and cannot be shown again.")
    ]
    token: ApiToken


class TokenRequest(schemas.Body):
    """The token to issue: for an agent, or for yourself as an operator."""

    agent: Annotated[names.Text | None, pydantic.Field(description="The agent, for an agent's token.")] = None
    operator: Annotated[
        names.Text | None, pydantic.Field(description="Your own user name, for an operator's token.")
    ] = None
    scope: Annotated[names.Text, pydantic.Field(description="read or write, for an operator's token.")] = ""
    name: Annotated[names.Text, pydantic.Field(description="A name that says what the token is for.")] = ""
    expires: Annotated[
        names.Timestamp | None, pydantic.Field(description="When it expires. Null: never.")
    ] = None
    reason: names.Reason = ""


@router.get("/tokens", auth=auth.viewing("api_token"), response=paging.list_of(ApiToken))
def list_tokens(request: HttpRequest, query: ninja.Query[paging.PageQuery]) -> Any:
    """List all tokens, newest first, including expired and revoked tokens."""
    return paging.slice_page(request, query, [_serialize(token) for token in tokens.all_tokens()])


@router.post(
    "/tokens",
    auth=auth.writing(rights.permission("add", "api_token")),
    response={201: IssuedToken, **problems.documented(404, 409)},
)
def issue_token(request: HttpRequest, body: TokenRequest) -> Any:
    """Issue a token. Returns 409 `refused` for another operator: operators issue their own tokens."""
    issued = tokens.issue(
        auth.write(request, reason=body.reason),
        name=body.name,
        agent=body.agent,
        user=body.operator,
        scope=body.scope,
        expires=body.expires,
    )
    return ninja.Status(201, {"text": issued.text, "token": _serialize(issued.token)})


@router.delete(
    "/tokens/{prefix}", auth=auth.writing(rights.permission("change", "api_token")), response=ApiToken
)
def revoke_token(request: HttpRequest, prefix: names.Name, query: ninja.Query[names.ReasonQuery]) -> Any:
    """Revoke a token permanently. Requests with it are rejected. It stays in the list."""
    return _serialize(tokens.revoke(auth.write(request, reason=query.reason), prefix))


def _serialize(token: tokens.Token) -> dict[str, Any]:
    return {
        "prefix": token.prefix,
        "name": token.name,
        "agent": token.agent,
        "operator": token.user,
        "scope": token.scope,
        "created": token.created,
        "expires": token.expires,
        "revoked": token.revoked,
        "last_used": token.last_used,
        "issued_by": token.issued_by,
        "rejection": token.rejection(timezone.now()),
    }
