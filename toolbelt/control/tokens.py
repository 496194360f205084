"""Who gets a token for the API, and who loses it?

A token is of one agent, which asks and calls with it, or of one operator, who reads or writes with it and never may
more than that operator may. Its text is given once, when it is issued, and kept nowhere; the audit names it by its
prefix. One that was revoked stays so: whoever needs one again is issued another.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from django.utils import timezone

from toolbelt import conf
from toolbelt.control import actors, writing
from toolbelt.core import api_tokens, errors
from toolbelt.store import access, audit

SCOPES = ("read", "write")
LONGEST_NAME = 100

Scope = Literal["", "read", "write"]
Token = access.Token


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """A token that was issued just now: ``text`` is given here and nowhere else."""

    text: str = field(repr=False)
    token: Token


def issue(
    actor: actors.Actor,
    *,
    name: str = "",
    agent: str | None = None,
    user: str | None = None,
    scope: str = "",
    expires: dt.datetime | None = None,
    reason: str = "",
) -> Issued:
    """Issue a token of an agent, or of an operator (the user's name) with a scope: ``read`` or ``write``.

    Raises Invalid for what makes no sense together, NotFound for an unknown agent or operator, and Refused for a
    token in another operator's name, unless it comes from the command line.
    """
    _check(name, agent, user, scope, expires)
    if user and user != actor.name and actor.via not in ("command", "system"):
        raise errors.Refused(
            "A token in an operator's name is issued by that operator, or on the server:"
            f" {conf.COMMAND} token issue --operator {user}."
        )
    text = api_tokens.make(secrets.choice)
    with writing.begin():
        token = access.add(
            prefix=api_tokens.prefix(text),
            digest=api_tokens.digest(text),
            name=name,
            agent=agent or "",
            user=user or "",
            scope=scope,
            expires=expires,
        )
        audit.record(
            actor=actor.name,
            via=actor.via,
            action="token.issue",
            subject_kind="token",
            subject_key=token.prefix,
            before=None,
            after=_told(token),
            reason=reason,
        )
    return Issued(text=text, token=token)


def revoke(actor: actors.Actor, prefix: str, reason: str = "") -> Token:
    """Revoke the token that begins so, for good. One that was revoked before stays as it is. Raises NotFound.

    Whoever has the whole of a token at hand, and fears for it, may give that.
    """
    if api_tokens.is_well_formed(prefix):
        prefix = api_tokens.prefix(prefix)
    with writing.begin():
        kept = access.find(prefix) if prefix.isprintable() else None
        if kept is None:
            raise errors.NotFound("token", prefix, access.prefixes())
        token = kept.token
        if token.revoked is not None:
            return token
        now = timezone.now()
        access.revoke(prefix, now)
        audit.record(
            actor=actor.name,
            via=actor.via,
            action="token.revoke",
            subject_kind="token",
            subject_key=prefix,
            before=_told(token),
            after=None,
            reason=reason,
        )
        return dataclasses.replace(token, revoked=now)


def listed() -> Sequence[Token]:
    """List all tokens, the newest first, also those that are over."""
    return access.listed()


def _check(name: str, agent: str | None, user: str | None, scope: str, expires: dt.datetime | None) -> None:
    problems = []
    if bool(agent) == bool(user):
        problems.append(errors.Problem(path="agent", message="a token is of one agent, or of one operator."))
    elif agent and scope:
        problems.append(errors.Problem(path="scope", message="an agent's token has none: leave it out."))
    elif user and scope not in SCOPES:
        problems.append(
            errors.Problem(path="scope", message=f"an operator's token has one: {' or '.join(SCOPES)}.")
        )
    if len(name) > LONGEST_NAME or not name.isprintable():
        problems.append(
            errors.Problem(path="name", message=f"a name is one line of at most {LONGEST_NAME} characters.")
        )
    if expires is not None and timezone.is_naive(expires):
        problems.append(errors.Problem(path="expires", message="a time says its zone, such as Z."))
    elif expires is not None and expires <= timezone.now():
        problems.append(errors.Problem(path="expires", message="a token ends in the future."))
    if problems:
        raise errors.Invalid(problems)


def _told(token: Token) -> dict[str, Any]:
    """Say in the audit what a token is, and nothing by which it could be recognised."""
    whose = {"agent": token.agent} if token.agent else {"operator": token.user, "scope": token.scope}
    ends = {"expires": token.expires.isoformat(timespec="seconds")} if token.expires else {}
    return {"name": token.name, **whose, **ends}
