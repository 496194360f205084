"""Claims of connections to upstream servers: which process holds which connection."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.db import DatabaseError
from django.db.models import Q

from toolbelt import models
from toolbelt.store import clock

# How long a claim lasts unless it is renewed.
LEASE = dt.timedelta(seconds=150)
# How often a claim is tried while other processes release it.
MAX_TRIES = 10
# After which time an expired claim is deleted.
_FORGOTTEN = dt.timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The claim of a process to hold the connection to ``plugin`` that is for ``owner``."""

    id: str
    plugin: str
    owner: str
    host: str
    address: str
    is_expired: bool = False


def claim(new: Claim, *, stale_claim_id: str = "") -> Claim:
    """Claim a connection, unless another process has; return the claim that holds now.

    ``stale_claim_id`` is the id of a claim that is known to be void, which this one may replace. Raise DatabaseError.
    """
    key = _key(new.plugin, new.owner)
    expires = clock.now() + LEASE
    values = {"claim": new.id, "host": new.host, "address": new.address, "expires": expires}
    stored = models.UpstreamConnection.objects
    if stale_claim_id:
        stored.filter(key=key, claim=stale_claim_id).update(**values)
    for _ in range(MAX_TRIES):
        row = models.UpstreamConnection(key=key, plugin=new.plugin, holder=new.owner, **values)
        stored.bulk_create([row], ignore_conflicts=True)
        # None if another process gives its claim up in between.
        if (row_ := stored.filter(key=key).first()) is not None:
            return _claim(row_)
    raise DatabaseError("Other processes keep claiming and releasing the connection.")


def renew(ids: Collection[str]) -> frozenset[str]:
    """Renew these claims and return the ids of those that other processes have taken over."""
    now = clock.now()
    stored = models.UpstreamConnection.objects
    stored.filter(expires__lt=now - _FORGOTTEN).delete()
    if stored.filter(claim__in=ids).update(expires=now + LEASE) == len(ids):
        return frozenset()
    return frozenset(ids) - frozenset(stored.filter(claim__in=ids).values_list("claim", flat=True))


def release(ids: Collection[str]) -> None:
    """Release these claims."""
    models.UpstreamConnection.objects.filter(claim__in=ids).delete()


def held_for(owner: str) -> Sequence[Claim]:
    """Return the claims of all processes to connections that are for this owner, for any person."""
    kind, _, rest = owner.partition(" ")
    of_person = Q(holder__startswith=f"{kind}:", holder__endswith=f" {rest}")
    return [_claim(row) for row in models.UpstreamConnection.objects.filter(Q(holder=owner) | of_person)]


def held_for_any(agent: str) -> Sequence[Claim]:
    """Return the claims of all processes whose owner may be this agent or a session of it: it names the agent."""
    return [_claim(row) for row in models.UpstreamConnection.objects.filter(holder__contains=f" {agent}")]


def _claim(row: models.UpstreamConnection) -> Claim:
    return Claim(
        id=row.claim,
        plugin=row.plugin,
        owner=row.holder,
        host=row.host,
        address=row.address,
        is_expired=row.expires < clock.now(),
    )


def _key(plugin: str, owner: str) -> str:
    return hashlib.sha256(f"{plugin}\n{owner}".encode()).hexdigest()
