"""API tokens: issuing and revoking them.

A token belongs to one agent, which makes requests and calls with it, or to one operator, who reads or writes with it
and has no more permissions than as a user. Its text is returned once, when it is issued, and is not stored; the audit
log names it by its prefix. A revoked token stays revoked: issue another one instead.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from django.utils import timezone

from toolbelt import conf, models
from toolbelt.control import writing
from toolbelt.control.people import client_connections
from toolbelt.core import api_tokens, errors
from toolbelt.store import credentials

SCOPES = ("read", "write")
MAX_NAME_LENGTH = 100

Scope = Literal["", "read", "write"]
Token = credentials.Token
Rejection = credentials.Rejection


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """A token that was just issued: ``text`` is available only here."""

    text: str = field(repr=False)
    token: Token


def issue(
    write: writing.Write,
    *,
    name: str = "",
    agent: str | None = None,
    user: str | None = None,
    scope: str = "",
    expires: dt.datetime | None = None,
) -> Issued:
    """Issue a token of an agent, or of an operator (by user name) with a scope: ``read`` or ``write``.

    Raise Invalid for arguments that do not go together, NotFound for an unknown agent or operator, or Refused for a
    token in another operator's name, unless it is issued from the command line.
    """
    _check(name, agent, user, scope, expires)
    if user and user != write.actor.name and write.actor.via not in ("command", "system"):
        raise errors.Refused(
            "A token for an operator must be issued by that operator, or on the server:"
            f" {conf.COMMAND} token issue --operator {user}."
        )
    text = api_tokens.make(secrets.choice)
    with writing.begin():
        token = credentials.add(
            prefix=api_tokens.prefix(text),
            digest=api_tokens.digest(text),
            name=name,
            agent=agent or "",
            user=user or "",
            scope=scope,
            expires=expires,
            issued_by=write.actor.name,
        )
        writing.record(
            write, "token", token.prefix, action="token.issue", before=None, after=_described(token)
        )
    return Issued(text=text, token=token)


def revoke(write: writing.Write, prefix: str) -> Token:
    """Revoke the token with this prefix permanently. A token that is already revoked is unchanged. Raise NotFound.

    With the token of a client that signed in, its connection is revoked. The complete text of a token, which may have
    leaked, is accepted as well.
    """
    if api_tokens.is_well_formed(prefix):
        prefix = api_tokens.prefix(prefix)
    with writing.begin():
        stored = credentials.find(prefix) if prefix.isprintable() else None
        if stored is None:
            raise errors.NotFound("token", prefix, credentials.prefixes())
        token = stored.token
        if token.revoked is not None:
            return token
        now = timezone.now()
        if token.agent and token.user:
            client_connections.revoke_of_token(write, prefix)
            return dataclasses.replace(token, revoked=now)
        credentials.revoke(prefix, now)
        writing.record(write, "token", prefix, action="token.revoke", before=_described(token), after=None)
        return dataclasses.replace(token, revoked=now)


def all_tokens() -> Sequence[Token]:
    """Return all tokens, the newest first, including revoked and expired ones."""
    return credentials.listed()


def of_agent(agent: str) -> Sequence[Token]:
    """Return the tokens of one agent, the newest first, including revoked and expired ones."""
    return credentials.listed(agent)


def rejection_of(row: models.ApiToken) -> Rejection:
    """Return why requests with the token of this row are rejected; empty if they are accepted."""
    is_active = row.user.is_active if row.user is not None else row.agent is None or not row.agent.archived
    token = Token(
        prefix=row.prefix,
        name=row.name,
        agent=row.agent.key if row.agent is not None else "",
        user=row.user.get_username() if row.user is not None else "",
        scope=row.scope,
        created=row.created,
        expires=row.expires,
        revoked=row.revoked,
        last_used=row.last_used,
        issued_by=row.issued_by,
        is_owner_active=is_active,
    )
    return token.rejection(timezone.now())


def _check(name: str, agent: str | None, user: str | None, scope: str, expires: dt.datetime | None) -> None:
    problems = []
    if bool(agent) == bool(user):
        problems.append(errors.Problem(path="agent", message="a token needs either an agent or an operator."))
    elif agent and scope:
        problems.append(errors.Problem(path="scope", message="an agent's token has no scope: leave it out."))
    elif user and scope not in SCOPES:
        problems.append(
            errors.Problem(path="scope", message=f"an operator's token needs a scope: {' or '.join(SCOPES)}.")
        )
    if len(name) > MAX_NAME_LENGTH or not name.isprintable():
        problems.append(
            errors.Problem(
                path="name", message=f"a name is one line of at most {MAX_NAME_LENGTH} characters."
            )
        )
    if expires is not None and timezone.is_naive(expires):
        problems.append(errors.Problem(path="expires", message="a time needs its zone, such as Z."))
    elif expires is not None and expires <= timezone.now():
        problems.append(errors.Problem(path="expires", message="choose a time in the future."))
    if problems:
        raise errors.Invalid(problems)


def _described(token: Token) -> dict[str, Any]:
    """Return the part of a token that the audit log stores, without anything that could identify its text."""
    owner = {"agent": token.agent} if token.agent else {"operator": token.user, "scope": token.scope}
    expiry = {"expires": token.expires.isoformat(timespec="seconds")} if token.expires else {}
    return {"name": token.name, **owner, **expiry}
