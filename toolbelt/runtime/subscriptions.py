"""The subscriptions of MCP clients to the policy of their agent, by a key of the client."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection

from toolbelt.store import subscriptions

# Of one token: more than it may have streams.
MOST = 2000
_HALF = 32


def key(token: str, agent: str, session: str | None, client_session: str) -> str:
    """Return what a client's subscription is kept under: two digests, so that a token's can be counted."""
    return _digest(token, agent) + _digest(session, client_session)


def add(subscription: str) -> bool:
    """Subscribe; return False where the token has too many subscriptions."""
    return subscriptions.add(subscription, subscription[:_HALF], MOST)


def remove(subscription: str) -> None:
    """End a subscription."""
    subscriptions.remove(subscription)


def among(keys: Collection[str]) -> frozenset[str]:
    """Return those of these keys that are subscribed. One query."""
    return subscriptions.among(keys)


def _digest(*parts: str | None) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_HALF]
