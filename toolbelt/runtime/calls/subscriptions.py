"""The subscriptions of MCP clients to policies and resources, by client key."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping

from toolbelt.store import subscriptions

# Per token: more than it may open streams.
MAX_COUNT = 2000
# How many resources of upstream servers a stream follows, and a client may subscribe to.
MAX_FOLLOWED = 100
_HALF = 32


def key(token: str, agent: str, session: str | None, client_session: str) -> str:
    """Return the client's key: two digests, of which the first is the token's, so that its subscriptions can be
    counted.
    """
    return _digest(token, agent) + _digest(session, client_session)


def add(subscription: str, uri: str = "") -> bool:
    """Subscribe to the policy, or to an upstream server's resource. Return False if the token has too many."""
    client = subscription if uri else ""
    return subscriptions.add(_key(subscription, uri), subscription[:_HALF], MAX_COUNT, client=client, uri=uri)


def is_full(subscription: str, uri: str) -> bool:
    """Return whether a client has subscribed to as many other resources as its stream follows."""
    others = {*subscriptions.uris([subscription]).get(subscription, ())} - {uri}
    return len(others) >= MAX_FOLLOWED


def remove(subscription: str, uri: str = "") -> None:
    """End a subscription."""
    subscriptions.remove(_key(subscription, uri))


def uris(keys: Collection[str]) -> Mapping[str, Collection[str]]:
    """Return the resource URIs that these clients are subscribed to, by client key. Uses one query."""
    return subscriptions.uris(keys)


def _key(subscription: str, uri: str) -> str:
    return subscription[:_HALF] + _digest(subscription[_HALF:], uri) if uri else subscription


def subscribed(keys: Collection[str]) -> frozenset[str]:
    """Return the keys that have a subscription. Uses one query."""
    return subscriptions.subscribed(keys)


def _digest(*parts: str | None) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_HALF]
