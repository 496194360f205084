"""The levels of log messages that MCP clients set: written by one process of the server, read by all."""

from __future__ import annotations

import datetime as dt

from toolbelt import models
from toolbelt.store import clock

# Restarts when a client sets its level again.
MAX_AGE = dt.timedelta(days=7)


def set_(key: str, level: str) -> None:
    """Set the level of a client, and delete outdated ones."""
    now = clock.now()
    models.LogLevel.objects.filter(at__lt=now - MAX_AGE).delete()
    models.LogLevel.objects.update_or_create(key=key, defaults={"level": level, "at": now})


def find(key: str) -> str:
    """Return the level of a client; empty if it set none."""
    return models.LogLevel.objects.filter(key=key).values_list("level", flat=True).first() or ""
