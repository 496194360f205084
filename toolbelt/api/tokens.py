"""Who has a token, how is one issued, and how is one revoked?"""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Any

import ninja
import pydantic
from django.http import HttpRequest

from toolbelt.api import auth, names, paging, problems, schemas
from toolbelt.control import rights, tokens

router = ninja.Router(tags=["tokens"])


class ApiToken(ninja.Schema):
    """What may be shown of a token: it is of an agent or of an operator, and the other one is empty."""

    prefix: str
    name: str
    agent: str
    operator: str
    scope: str
    created: dt.datetime
    expires: dt.datetime | None
    revoked: dt.datetime | None
    last_used: dt.datetime | None


class IssuedToken(ninja.Schema):
    """A new token. ``text`` is shown here and never again: nothing keeps it."""

    text: str
    token: ApiToken


class TokenWanted(schemas.Body):
    """Whose token is wanted: one agent's, or one's own as an operator."""

    agent: names.Text | None = None
    operator: Annotated[names.Text | None, pydantic.Field(description="Your own user name.")] = None
    scope: Annotated[names.Text, pydantic.Field(description="Of an operator's: read or write.")] = ""
    name: Annotated[names.Text, pydantic.Field(description="What it is for, for people to read.")] = ""
    expires: Annotated[names.Moment | None, pydantic.Field(description="Null: never.")] = None
    reason: names.Reason = ""


@router.get("/tokens", auth=auth.looking("api_token"), response=paging.Page[ApiToken])
def list_tokens(request: HttpRequest, asked: ninja.Query[paging.Asked]) -> Any:
    """List all tokens, the newest first, also those that are over."""
    return paging.of(request, asked, [_told(token) for token in tokens.listed()])


@router.post(
    "/tokens",
    auth=auth.writing(rights.to("add", "api_token")),
    response={201: IssuedToken, **problems.answers(404, 409)},
)
def issue_token(request: HttpRequest, body: TokenWanted) -> Any:
    """Issue a token. 409 `refused`: one in another operator's name is issued by that operator."""
    done = tokens.issue(
        auth.actor(request),
        name=body.name,
        agent=body.agent,
        user=body.operator,
        scope=body.scope,
        expires=body.expires,
        reason=body.reason,
    )
    return ninja.Status(201, {"text": done.text, "token": _told(done.token)})


@router.delete("/tokens/{prefix}", auth=auth.writing(rights.to("change", "api_token")), response=ApiToken)
def revoke_token(request: HttpRequest, prefix: names.Name, asked: ninja.Query[names.Act]) -> Any:
    """Revoke a token, for good; from now on it opens nothing. Its line stays in the list."""
    return _told(tokens.revoke(auth.actor(request), prefix, asked.reason))


def _told(token: tokens.Token) -> dict[str, Any]:
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
    }
