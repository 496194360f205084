"""Removal of MCP clients that have registered and that no one connects: anyone can register one.

A server does it once an hour. What expired of the authorization server's codes and tokens goes as well.
"""

from __future__ import annotations

import datetime as dt
import threading

import structlog
from django.db import connections
from django.utils import timezone
from oauth2_provider import models as oauth

from toolbelt import models

# How long a client may be without a connection.
UNUSED = dt.timedelta(days=1)
SECONDS = 3600.0

_log = structlog.get_logger(__name__)
_stopping: threading.Event | None = None


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


def start() -> None:
    """Start a background thread that removes them until :func:`stop`. For servers."""
    global _stopping
    if _stopping is None:
        _stopping = threading.Event()
        threading.Thread(
            target=_keep_pruning, args=[_stopping], name="toolbelt-unused-clients", daemon=True
        ).start()


def stop() -> None:
    """Stop the thread; it completes what it has begun to write, and callers need not wait."""
    global _stopping
    if _stopping is not None:
        _stopping.set()
        _stopping = None


def _keep_pruning(stopping: threading.Event) -> None:
    # Not immediately: a starting server has other work.
    while not stopping.wait(SECONDS):
        try:
            prune(timezone.now())
        except Exception:
            _log.exception("unused clients not removed")
        finally:
            connections.close_all()
