"""Removal of MCP clients that have registered and that no one connects: anyone can register one.

A server does it once an hour. What expired of the authorization server's codes and tokens goes as well.
"""

from __future__ import annotations

import datetime as dt

from django.utils import timezone
from oauth2_provider import models as oauth

from toolbelt import models
from toolbelt.control import repeating

# How long a client may be without a connection.
UNUSED = dt.timedelta(days=1)
SECONDS = 3600.0


def prune(now: dt.datetime) -> int:
    """Remove the clients that were registered a day ago and have no connection; return their number."""
    connected = models.ClientConnection.objects.filter(revoked=None, application__isnull=False)
    unused = oauth.Application.objects.filter(created__lt=now - UNUSED).exclude(
        pk__in=connected.values("application")
    )
    number: int = unused.count()
    unused.delete()
    models.SignInAttempt.objects.filter(at__lt=now - UNUSED, application=None).delete()
    oauth.clear_expired()
    return number


def _prune() -> None:
    prune(timezone.now())


_thread = repeating.Repeating("toolbelt-unused-clients", _prune, SECONDS, "unused clients not removed")
start, stop = _thread.start, _thread.stop
