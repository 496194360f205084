"""The stored sign-ins at upstream servers, and which process renews a token."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import Q

from toolbelt import models
from toolbelt.store import clock, encryption

# How long a person may take to come back.
BEGUN = dt.timedelta(minutes=10)
# How long a process may take to renew a token, and how long none tries again after a failure.
LEASE, PAUSE = dt.timedelta(seconds=30), dt.timedelta(seconds=15)
# A token that served this long before the server refused it begins a new count of refusals.
SERVED = dt.timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """A sign-in: ``sealed`` is the grant, encrypted. ``error`` is why its token could not be renewed; for good, if it
    is ``ended``. No process begins to renew it until ``busy_until``. ``refusals`` is how many tokens in a row the
    server refused before they expired. ``demanded`` are scopes that the server demanded, and that it lacks.
    """

    id: int
    signed_in_by: str
    url: str
    issuer: str
    scopes: str
    demanded: str
    sealed: str
    created: dt.datetime
    renewed: dt.datetime
    expires: dt.datetime | None
    error: str
    ended: bool
    refusals: int
    busy_until: dt.datetime | None

    def grant(self) -> str:
        """Return the grant. Raise errors.Refused if no key decrypts it."""
        return encryption.decrypt(self.sealed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A sign-in whose person has come back: ``text`` is what was kept of it. ``is_own``: for this person alone."""

    plugin: str
    is_own: bool
    url: str
    text: str


def find(plugin: str, person: int | None = None) -> SignIn | None:
    """Return the sign-in at a server: that of a person (by primary key), or else the one that operators made."""
    row = models.ServerSignIn.objects.filter(plugin__name=plugin, user=person).first()
    return None if row is None else _value(row)


def of_person(person: int) -> dict[str, SignIn]:
    """Return the sign-ins of a person (by primary key), by the server."""
    rows = models.ServerSignIn.objects.filter(user=person).select_related("plugin")
    return {row.plugin.name: _value(row) for row in rows}


def put(
    plugin: str,
    person: int | None = None,
    *,
    signed_in_by: str,
    url: str,
    issuer: str,
    scopes: str,
    grant: str,
    expires: dt.datetime | None,
) -> SignIn:
    """Store a sign-in in place of the one before, and return it."""
    now = clock.now()
    values = {
        "signed_in_by": signed_in_by,
        "url": url,
        "issuer": issuer,
        "scopes": scopes,
        "demanded": "",
        "grant": encryption.encrypt(grant),
        "created": now,
        "renewed": now,
        "expires": expires,
        "error": "",
        "ended": False,
        "refusals": 0,
        "busy_until": None,
    }
    row = models.Plugin.objects.get(name=plugin)
    user = None if person is None else get_user_model()._default_manager.get(pk=person)
    stored, _ = models.ServerSignIn.objects.update_or_create(plugin=row, user=user, defaults=values)
    return _value(stored)


def remove(plugin: str, person: int | None = None) -> SignIn | None:
    """Remove the sign-in at a server, and return it."""
    found = find(plugin, person)
    models.ServerSignIn.objects.filter(plugin__name=plugin, user=person).delete()
    return found


def lease(seen: SignIn) -> dt.datetime | None:
    """Reserve the renewal of a token for this process, and return the lease; None if it is no longer as it was seen, or
    another process has it.
    """
    now = clock.now()
    rows = models.ServerSignIn.objects.filter(pk=seen.id, grant=seen.sealed, ended=False)
    free = rows.filter(Q(busy_until=None) | Q(busy_until__lte=now))
    return now + LEASE if free.update(busy_until=now + LEASE) else None


def renew(
    seen: SignIn,
    lease: dt.datetime,
    grant: str,
    scopes: str,
    expires: dt.datetime | None,
    *,
    was_refused: bool = False,
) -> None:
    """Store the renewed tokens, and end the lease. ``was_refused``: the server refused the token before it expired."""
    is_first = clock.now() >= seen.renewed + SERVED
    refusals = (1 if is_first else seen.refusals + 1) if was_refused else 0
    models.ServerSignIn.objects.filter(pk=seen.id, busy_until=lease).update(
        grant=encryption.encrypt(grant),
        scopes=scopes,
        renewed=clock.now(),
        expires=expires,
        error="",
        refusals=refusals,
        busy_until=None,
    )


def fail(seen: SignIn, lease: dt.datetime, error: str, *, ended: bool) -> None:
    """Store why a token could not be renewed. Unless it is ``ended`` for good, the next attempt is after a pause."""
    models.ServerSignIn.objects.filter(pk=seen.id, busy_until=lease).update(
        error=error, ended=ended, busy_until=None if ended else clock.now() + PAUSE
    )


def demand(seen: SignIn, scopes: Iterable[str]) -> None:
    """Store that the server demands these scopes beside those that it demanded before. Those that it granted are left
    out.
    """
    granted = seen.scopes.split()
    all_scopes = dict.fromkeys([*seen.demanded.split(), *scopes])
    demanded = " ".join(scope for scope in all_scopes if scope not in granted)
    if demanded != seen.demanded:
        models.ServerSignIn.objects.filter(pk=seen.id, grant=seen.sealed).update(demanded=demanded)


def demanded() -> dict[str, str]:
    """Return the scopes that servers demand and the sign-ins of operators lack, by the server."""
    rows = models.ServerSignIn.objects.filter(user=None).exclude(demanded="")
    return dict(rows.values_list("plugin__name", "demanded"))


def begin(
    state: str, session: str, user: Any, plugin: str, url: str, text: str, *, is_own: bool = False
) -> None:
    """Keep what is needed when a person comes back, and forget those who did not come back in time."""
    models.BegunSignIn.objects.filter(expires__lt=clock.now()).delete()
    models.BegunSignIn.objects.create(
        state=_digest(state),
        session=_digest(session),
        plugin=models.Plugin.objects.get(name=plugin),
        user=user,
        is_own=is_own,
        url=url,
        begun=encryption.encrypt(text),
        expires=clock.now() + BEGUN,
    )


def take(state: str, session: str, user: Any) -> Begun | None:
    """Return the sign-in that a person began in this session, once; None if there is none."""
    rows = models.BegunSignIn.objects.filter(
        state=_digest(state), session=_digest(session), user=user, expires__gte=clock.now()
    )
    with transaction.atomic():
        row = rows.select_related("plugin").first()
        # Of two who come at once, one has deleted it.
        if row is None or not rows.delete()[0]:
            return None
    return Begun(plugin=row.plugin.name, is_own=row.is_own, url=row.url, text=encryption.decrypt(row.begun))


def encrypt_again() -> tuple[int, int]:
    """Encrypt all sign-ins with the first key. Return how many were, and how many no key decrypts."""
    done = unreadable = 0
    for row in models.ServerSignIn.objects.all():
        try:
            grant = encryption.encrypt_again(row.grant)
        except encryption.UnreadableError:
            unreadable += 1
            continue
        # Not if it was renewed meanwhile, which encrypts it with the first key anyway.
        models.ServerSignIn.objects.filter(pk=row.pk, grant=row.grant).update(grant=grant)
        done += 1
    return done, unreadable


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _value(row: models.ServerSignIn) -> SignIn:
    return SignIn(
        id=row.pk,
        signed_in_by=row.signed_in_by,
        url=row.url,
        issuer=row.issuer,
        scopes=row.scopes,
        demanded=row.demanded,
        sealed=row.grant,
        created=row.created,
        renewed=row.renewed,
        expires=row.expires,
        error=row.error,
        ended=row.ended,
        refusals=row.refusals,
        busy_until=row.busy_until,
    )
