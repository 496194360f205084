"""The MCP clients that subscribed to a resource: written by one process of the server, read by all."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection

from toolbelt import models
from toolbelt.store import clock

# Restarts when a client subscribes again.
MAX_AGE = dt.timedelta(days=30)
# Keys are hexadecimal: this sorts after all of them.
_AFTER_HEX = "g"


def add(key: str, owner: str, maximum: int, *, client: str = "", uri: str = "") -> bool:
    """Add a subscription; return False, without adding it, if the owner has ``maximum`` others.

    A subscription to a resource of an upstream server has its ``uri`` and the key of its ``client``. ``owner`` is the
    prefix of the keys of all subscriptions of the same token.
    """
    now = clock.now()
    stored = models.ResourceSubscription.objects
    stored.filter(at__lt=now - MAX_AGE).delete()
    of_owner = stored.filter(key__gte=owner, key__lt=owner + _AFTER_HEX).exclude(key=key)
    if of_owner.count() >= maximum:
        return False
    stored.update_or_create(key=key, defaults={"at": now, "client": client, "uri": uri})
    return True


def remove(key: str) -> None:
    """Remove a subscription, if it exists."""
    models.ResourceSubscription.objects.filter(key=key).delete()


def uris(clients: Collection[str]) -> dict[str, list[str]]:
    """Return the URIs to which these clients are subscribed, by client, sorted. Uses one query."""
    since = clock.now() - MAX_AGE
    stored = models.ResourceSubscription.objects.filter(client__in=clients, at__gte=since).order_by("uri")
    by_client: dict[str, list[str]] = {}
    for client, uri in stored.values_list("client", "uri"):
        by_client.setdefault(client, []).append(uri)
    return by_client


def subscribed(keys: Collection[str]) -> frozenset[str]:
    """Return those of these keys that are subscribed. Uses one query."""
    since = clock.now() - MAX_AGE
    stored = models.ResourceSubscription.objects.filter(key__in=keys, at__gte=since)
    return frozenset(stored.values_list("key", flat=True))
