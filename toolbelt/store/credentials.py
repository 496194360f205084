"""API tokens: adding, finding and revoking them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib import auth
from django.db.models import F, Q
from django.db.models.functions import Coalesce

from toolbelt import models
from toolbelt.core import errors


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """The public data of a token: either ``agent`` or ``user`` is its owner, and the other is empty."""

    prefix: str
    name: str
    agent: str
    user: str
    scope: str
    created: dt.datetime
    expires: dt.datetime | None
    revoked: dt.datetime | None
    last_used: dt.datetime | None

    def is_valid(self, now: dt.datetime) -> bool:
        """Return whether the token is neither revoked nor expired."""
        return self.revoked is None and (self.expires is None or now < self.expires)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredToken:
    """A token with what authenticates it: ``user_id`` is None for an agent's.

    ``is_active``: its user is active, or its agent is not archived.
    """

    token: Token
    digest: str
    user_id: int | None
    is_active: bool


def add(
    *, prefix: str, digest: str, name: str, agent: str, user: str, scope: str, expires: dt.datetime | None
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
        prefix=prefix, digest=digest, name=name, scope=scope, expires=expires, **owner
    )
    return _stored(prefix=prefix)[0].token


def find(prefix: str) -> StoredToken | None:
    """Return the token with this prefix, in one query."""
    return next(iter(_stored(prefix=prefix)), None)


def listed(agent: str = "") -> list[Token]:
    """Return all tokens, or those of one agent, the newest first."""
    return [stored.token for stored in _stored(**({"agent__key": agent} if agent else {}))]


def is_any_agent_connected() -> bool:
    """Return whether any agent's token was ever used."""
    return models.ApiToken.objects.filter(agent__isnull=False, last_used__isnull=False).exists()


def rejected_though_valid(now: dt.datetime) -> list[Token]:
    """Return the tokens that are valid but rejected: their agent is archived, or their user is not active."""
    return [stored.token for stored in _stored() if stored.token.is_valid(now) and not stored.is_active]


def prefixes() -> list[str]:
    """Return the prefixes of all tokens."""
    return list(models.ApiToken.objects.values_list("prefix", flat=True))


def revoke(prefix: str, at: dt.datetime) -> None:
    """Revoke the token."""
    models.ApiToken.objects.filter(prefix=prefix).update(revoked=at)


def record_uses(uses: Mapping[str, dt.datetime], min_interval: dt.timedelta) -> None:
    """Record when tokens were last used, unless the recorded time is less than ``min_interval`` earlier."""
    for prefix, at in uses.items():
        older = Q(last_used__isnull=True) | Q(last_used__lte=at - min_interval)
        models.ApiToken.objects.filter(older, prefix=prefix).update(last_used=at)


def from_row(row: tuple[Any, ...]) -> StoredToken:
    """Return the token of a row, with the columns in the order of the queries here."""
    prefix, name, agent, user, scope, created, expires, revoked, last_used, digest, user_id, is_active = row
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
        ),
        digest=digest,
        user_id=user_id,
        is_active=bool(is_active),
    )


def _stored(**filters: str) -> list[StoredToken]:
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
        # A user who is active, or an agent that is not archived.
        Coalesce("user__is_active", ~F("agent__archived")),
    )
    return [from_row(row) for row in rows]
