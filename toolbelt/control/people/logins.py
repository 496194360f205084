"""Where people are logged in: the browsers, listed and ended. Tokens and clients that signed in are not among them.

The sessions are Django's; a row beside each says which browser it is. When it was last used is stored every five
minutes at most. A server removes those that have ended once an hour.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session

from toolbelt import models
from toolbelt.control import repeating, writing
from toolbelt.core import errors
from toolbelt.store import clock

MAX_BROWSER, MAX_ADDRESS = 300, 45
# How long the row of a login stays after its session has ended.
FORGOTTEN = dt.timedelta(days=1)
SECONDS = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A browser that a person is logged in with. ``is_current``: it asks for this."""

    id: int
    browser: str
    address: str
    since: dt.datetime
    last_used: dt.datetime
    is_current: bool


def note(user: int, session: str, browser: str, address: str) -> None:
    """Store that a user (by primary key) uses a session now, with this browser and from this address."""
    now = clock.now()
    seen = {
        "user_id": user,
        "browser": browser[:MAX_BROWSER].replace("\0", ""),
        "address": address[:MAX_ADDRESS],
        "last_used": now,
    }
    models.Login.objects.update_or_create(
        session_key=session, defaults=seen, create_defaults={**seen, "since": now}
    )


def of_user(user: int, session: str) -> Sequence[Login]:
    """Return the logins of a user, by primary key, the last used first, in two queries; ``session`` asks for it."""
    rows = list(models.Login.objects.filter(user_id=user).order_by("-last_used", "pk"))
    living = _living([row.session_key for row in rows])
    return [
        Login(
            id=row.pk,
            browser=row.browser,
            address=row.address,
            since=row.since,
            last_used=row.last_used,
            is_current=row.session_key == session,
        )
        for row in rows
        if row.session_key in living
    ]


def end(write: writing.Write, user: Any, login: int) -> None:
    """Log a user out on one browser. Raise errors.NotFound."""
    with writing.begin():
        row = models.Login.objects.filter(user=user, pk=login).first()
        if row is None:
            raise errors.NotFound("login", str(login))
        _end(write, user, [row])


def end_others(write: writing.Write, user: Any, session: str | None) -> int:
    """Log a user out on all browsers but that of a session; return how many there were."""
    with writing.begin():
        return _end(write, user, models.Login.objects.filter(user=user).exclude(session_key=session or ""))


def end_all(write: writing.Write, user: Any) -> int:
    """Log a user out everywhere; return on how many browsers they were."""
    return end_others(write, user, None)


def prune(now: dt.datetime) -> None:
    """Delete the sessions that have expired, and the rows of logins whose session is gone, a day after their last use:
    a row may be stored a moment before its session.
    """
    SessionStore.clear_expired()
    gone = models.Login.objects.exclude(session_key__in=Session.objects.values("session_key"))
    gone.filter(last_used__lt=now - FORGOTTEN).delete()


def _end(write: writing.Write, user: Any, rows: Any) -> int:
    """Delete the sessions, and the rows with those that have ended already."""
    keys = [row.session_key for row in rows]
    living = _living(keys)
    Session.objects.filter(session_key__in=keys).delete()
    models.Login.objects.filter(session_key__in=keys).delete()
    if living:
        writing.record(
            write, "user", user.get_username(), action="user.logout", before=len(living), after=None
        )
    return len(living)


def _living(keys: Sequence[str]) -> frozenset[str]:
    return frozenset(
        Session.objects.filter(session_key__in=keys, expire_date__gt=clock.now()).values_list(
            "session_key", flat=True
        )
    )


def _prune() -> None:
    prune(clock.now())


_thread = repeating.Repeating("toolbelt-logins", _prune, SECONDS, "ended logins not removed")
start, stop = _thread.start, _thread.stop
