"""The MCP clients that subscribed to a resource: written by one process of the server, read by all."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection

from toolbelt import models
from toolbelt.store import clock

# A client that subscribes again starts this anew.
KEPT = dt.timedelta(days=30)
# Keys are hexadecimal: this sorts behind all of them.
_BEHIND = "g"


def add(key: str, owner: str, most: int) -> bool:
    """Add a subscription; return False, and add none, where the owner has that many others.

    ``owner`` is what the keys of all subscriptions of the same token begin with.
    """
    now = clock.now()
    stored = models.ResourceSubscription.objects
    stored.filter(at__lt=now - KEPT).delete()
    of_owner = stored.filter(key__gte=owner, key__lt=owner + _BEHIND).exclude(key=key)
    if of_owner.count() >= most:
        return False
    stored.update_or_create(key=key, defaults={"at": now})
    return True


def remove(key: str) -> None:
    """Remove a subscription, if there is one."""
    models.ResourceSubscription.objects.filter(key=key).delete()


def among(keys: Collection[str]) -> frozenset[str]:
    """Return those of these keys that are subscribed. One query."""
    since = clock.now() - KEPT
    stored = models.ResourceSubscription.objects.filter(key__in=keys, at__gte=since)
    return frozenset(stored.values_list("key", flat=True))
