"""Which tokens are there, and whose is this one?"""

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
    """What may be shown of a token: ``agent`` or ``user`` says whose it is, the other one is empty."""

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
        """Say whether it still opens anything."""
        return self.revoked is None and (self.expires is None or now < self.expires)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What recognises a token, and who acts with it: ``user_id`` is None where it is an agent's.

    ``is_active``: its user is, or its agent is not archived.
    """

    token: Token
    digest: str
    user_id: int | None
    is_active: bool


def add(
    *, prefix: str, digest: str, name: str, agent: str, user: str, scope: str, expires: dt.datetime | None
) -> Token:
    """Keep a token of the agent, or else of the user, of this name. Raises errors.NotFound."""
    users = auth.get_user_model()._default_manager
    field = auth.get_user_model().USERNAME_FIELD
    owner: dict[str, int] = {}
    if agent:
        if (found := models.Agent.objects.filter(key=agent).first()) is None:
            raise errors.NotFound("agent", agent, models.Agent.objects.values_list("key", flat=True))
        owner["agent_id"] = found.pk
    else:
        if (known := users.filter(**{field: user}).first()) is None:
            raise errors.NotFound("operator", user, users.values_list(field, flat=True))
        owner["user_id"] = known.pk
    models.ApiToken.objects.create(
        prefix=prefix, digest=digest, name=name, scope=scope, expires=expires, **owner
    )
    return _kept(prefix=prefix)[0].token


def find(prefix: str) -> Kept | None:
    """Find the token that begins so, in one query."""
    return next(iter(_kept(prefix=prefix)), None)


def listed() -> list[Token]:
    """List all tokens, the newest first."""
    return [kept.token for kept in _kept()]


def prefixes() -> list[str]:
    """Name all tokens."""
    return list(models.ApiToken.objects.values_list("prefix", flat=True))


def revoke(prefix: str, at: dt.datetime) -> None:
    """Let the token open nothing any more."""
    models.ApiToken.objects.filter(prefix=prefix).update(revoked=at)


def used(uses: Mapping[str, dt.datetime], apart: dt.timedelta) -> None:
    """Note when tokens were last used, unless the note that is there is hardly older."""
    for prefix, at in uses.items():
        older = Q(last_used__isnull=True) | Q(last_used__lte=at - apart)
        models.ApiToken.objects.filter(older, prefix=prefix).update(last_used=at)


def kept(row: tuple[Any, ...]) -> Kept:
    """Read a row, in the order in which they are asked for here."""
    prefix, name, agent, user, scope, created, expires, revoked, last_used, digest, user_id, is_active = row
    return Kept(
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


def _kept(**narrowed: str) -> list[Kept]:
    field = auth.get_user_model().USERNAME_FIELD
    rows = models.ApiToken.objects.filter(**narrowed).values_list(
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
        # A user's who is there, or an agent's that is not archived.
        Coalesce("user__is_active", ~F("agent__archived")),
    )
    return [kept(row) for row in rows]
