"""API tokens: adding, finding and revoking them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from django.contrib import auth
from django.db.models import Case, Q, When

from toolbelt import models
from toolbelt.core import errors

# Why a token is rejected: it was revoked, it expired, its agent is archived, or its user is deactivated.
Rejection = Literal["", "revoked", "expired", "archived", "deactivated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """The public data of a token: either ``agent`` or ``user`` is its owner, and the other is empty; a token of a
    client's connection names both, the agent and the person for whom the client acts.

    ``issued_by`` is who issued it, as in the audit log; empty if that is not known. ``is_owner_active``: its user is
    active, and its agent is not archived.
    """

    prefix: str
    name: str
    agent: str
    user: str
    scope: str
    created: dt.datetime
    expires: dt.datetime | None
    revoked: dt.datetime | None
    last_used: dt.datetime | None
    issued_by: str = ""
    is_owner_active: bool = True

    def is_valid(self, now: dt.datetime) -> bool:
        """Return whether requests with the token are accepted."""
        return not self.rejection(now)

    def rejection(self, now: dt.datetime) -> Rejection:
        """Return why requests with the token are rejected; empty if they are accepted."""
        if self.revoked is not None:
            return "revoked"
        if self.expires is not None and self.expires <= now:
            return "expired"
        if self.is_owner_active:
            return ""
        return "archived" if self.agent else "deactivated"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredToken:
    """A token with what authenticates it: ``user_id`` is None for an agent's."""

    token: Token
    digest: str
    user_id: int | None


def add(
    *,
    prefix: str,
    digest: str,
    name: str,
    agent: str,
    user: str,
    scope: str,
    expires: dt.datetime | None,
    issued_by: str,
) -> Token:
    """Store a token of the agent, or else of the user, with this name; raise errors.NotFound."""
    users = auth.get_user_model()._default_manager
    field = auth.get_user_model().USERNAME_FIELD
    owner: dict[str, int] = {}
    if agent:
        if (agent_row := models.Agent.objects.filter(key=agent).first()) is None:
            raise errors.NotFound("agent", agent, models.Agent.objects.values_list("key", flat=True))
        owner["agent_id"] = agent_row.pk
    else:
        if (user_row := users.filter(**{field: user}).first()) is None:
            raise errors.NotFound("operator", user, users.values_list(field, flat=True))
        owner["user_id"] = user_row.pk
    models.ApiToken.objects.create(
        prefix=prefix,
        digest=digest,
        name=name,
        scope=scope,
        expires=expires,
        issued_by=issued_by,
        **owner,
    )
    return _stored(prefix=prefix)[0].token


def find(prefix: str) -> StoredToken | None:
    """Return the token with this prefix, in one query."""
    return next(iter(_stored(prefix=prefix)), None)


def listed(agent: str = "") -> list[Token]:
    """Return all tokens that were issued by operators, or those of one agent, the newest first."""
    filters = {"agent__key": agent} if agent else {}
    return [stored.token for stored in _stored(connection__isnull=True, **filters)]


def is_any_agent_connected() -> bool:
    """Return whether any agent's token was ever used."""
    return models.ApiToken.objects.filter(agent__isnull=False, last_used__isnull=False).exists()


def rejected_though_valid(now: dt.datetime) -> list[Token]:
    """Return the tokens that are rejected only because their agent is archived, or their user is not active."""
    return [token for token in listed() if token.rejection(now) in ("archived", "deactivated")]


def prefixes() -> list[str]:
    """Return the prefixes of all tokens that were issued by operators."""
    return list(models.ApiToken.objects.filter(connection=None).values_list("prefix", flat=True))


def revoke(prefix: str, at: dt.datetime) -> None:
    """Revoke the token."""
    models.ApiToken.objects.filter(prefix=prefix).update(revoked=at)


def record_uses(uses: Mapping[str, dt.datetime], min_interval: dt.timedelta) -> None:
    """Record when tokens were last used, unless the recorded time is less than ``min_interval`` earlier."""
    for prefix, at in uses.items():
        older = Q(last_used__isnull=True) | Q(last_used__lte=at - min_interval)
        models.ApiToken.objects.filter(older, prefix=prefix).update(last_used=at)
        models.ClientConnection.objects.filter(older, api_tokens__prefix=prefix).update(last_used=at)


def from_row(row: tuple[Any, ...]) -> StoredToken:
    """Return the token of a row, with the columns in the order of the queries here; the last one, ``issued_by``, may be
    left out.
    """
    prefix, name, agent, user, scope, created, expires, revoked, last_used, digest, user_id, is_active = row[
        :12
    ]
    return StoredToken(
        token=Token(
            prefix=prefix,
            name=name,
            agent=agent or "",
            user=user or "",
            scope=scope,
            created=created,
            expires=expires,
            revoked=revoked,
            last_used=last_used,
            issued_by="".join(row[12:]),
            is_owner_active=bool(is_active),
        ),
        digest=digest,
        user_id=user_id,
    )


def _stored(**filters: str | bool) -> list[StoredToken]:
    field = auth.get_user_model().USERNAME_FIELD
    rows = models.ApiToken.objects.filter(**filters).values_list(
        "prefix",
        "name",
        "agent__key",
        f"user__{field}",
        "scope",
        "created",
        "expires",
        "revoked",
        "last_used",
        "digest",
        "user_id",
        # A user who is active, an agent that is not archived, or both.
        Case(When(Q(user__is_active=False) | Q(agent__archived=True), then=False), default=True),
        "issued_by",
    )
    return [from_row(row) for row in rows]
