"""Release of the connections to upstream servers that were opened for an agent or session that is gone.

The claims are released in the transaction; after the commit, the processes that hold the connections are notified to
close them. A process that is not reached notices within a minute, when it renews its claims.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.db import transaction
from django.db.models import signals

from toolbelt import models
from toolbelt.core import request_key
from toolbelt.plugins.upstream import connection_owners
from toolbelt.store import upstream_connections

# Is notified of the released claims, after the commit.
Listener = Callable[[Sequence[upstream_connections.Claim]], object]

_listener: Listener | None = None


def connect() -> None:
    """Release the connections of every agent that is archived or deleted, by any write."""
    signals.post_save.connect(_agent_saved, sender=models.Agent, dispatch_uid="toolbelt.connection_cleanup")
    signals.post_delete.connect(
        _agent_deleted, sender=models.Agent, dispatch_uid="toolbelt.connection_cleanup"
    )


def listen(listener: Listener | None) -> None:
    """Set the listener that is notified of released claims."""
    global _listener
    _listener = listener


def end_session(agent: str, session: str) -> bool:
    """Release the connections of a session; return whether there were any."""
    key = connection_owners.key("session", request_key.RequestKey(agent, session))
    return _end(upstream_connections.held_for(key))


def _agent_saved(instance: models.Agent, raw: bool, **kwargs: Any) -> None:
    if instance.archived and not raw:
        _end_agent(instance.key)


def _agent_deleted(instance: models.Agent, **kwargs: Any) -> None:
    _end_agent(instance.key)


def _end_agent(agent: str) -> None:
    _end(
        [
            claim
            for claim in upstream_connections.held_for_any(agent)
            if connection_owners.agent_of(claim.owner) == agent
        ]
    )


def _end(claims: Sequence[upstream_connections.Claim]) -> bool:
    if claims:
        upstream_connections.release([claim.id for claim in claims])
        transaction.on_commit(lambda: _listener(claims) if _listener is not None else None)
    return bool(claims)
