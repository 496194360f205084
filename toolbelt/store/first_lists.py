"""The lists with which sessions of MCP clients began: written by one process of the server, read by all."""

from __future__ import annotations

import datetime as dt

from toolbelt import models
from toolbelt.store import clock

# Restarts when another session begins with the same list.
MAX_AGE = dt.timedelta(days=30)


def put(key: str, tools: str) -> None:
    """Keep a list, and forget those with which no session began for long."""
    now = clock.now()
    stored = models.FirstList.objects
    stored.filter(at__lt=now - MAX_AGE).delete()
    stored.update_or_create(key=key, defaults={"tools": tools, "at": now})


def get(key: str) -> str | None:
    """Return the list, if it is still kept."""
    return models.FirstList.objects.filter(key=key).values_list("tools", flat=True).first()
