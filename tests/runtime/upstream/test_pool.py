"""Tests of the thread that maintains connections, and of which connection is closed when the limit is reached."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import pytest

from toolbelt.core import connections
from toolbelt.plugins.upstream import backoff, connection
from toolbelt.runtime.upstream import pool as upstream_pool


def test_renewing_claims_and_closing_idle_connections_are_retried_after_a_failure() -> None:
    renewals: list[float] = []
    closings: list[str] = []
    is_closed = threading.Event()

    def renew(held: Sequence[upstream_pool.Pooled]) -> None:
        renewals.append(time.monotonic())
        if len(renewals) == 1:
            raise RuntimeError("can't start new thread")

    def close(ended: Sequence[upstream_pool.Pooled]) -> None:
        closings.extend(pooled.key for pooled in ended)
        if len(closings) == 1:
            raise RuntimeError("can't start new thread")
        is_closed.set()

    pool = upstream_pool.Pool(close, lambda: 10, renew=renew, renew_every=0.05)
    reached = connections.of({"command": "true", "idle": 1})
    assert reached is not None

    def make(pooled: upstream_pool.Pooled, away: backoff.Backoff) -> connection.Server:
        return connection.Server(reached, environ={})

    for key in ("agent ada", "agent bob"):
        pool.give_back(pool.take("files", key, "d", reached, make, claim=key))
        time.sleep(0.1)

    assert is_closed.wait(20)
    assert closings == ["agent ada", "agent bob"]
    assert len(renewals) > 1


class Limited:
    """A pool of connections to one server with a limit of four, of which one agent's share is two."""

    def __init__(self) -> None:
        self.closed: list[str] = []
        self.pool = upstream_pool.Pool(
            lambda ended: self.closed.extend(pooled.key for pooled in ended), lambda: 100
        )
        self.reached = connections.of({"command": "true", "max_connections": 4})

    def take(self, key: str) -> upstream_pool.Pooled:
        """Reserve a connection as a starting call does."""
        assert self.reached is not None
        server = connection.Server(self.reached, environ={})
        return self.pool.take("files", key, "d", self.reached, lambda pooled, away: server)

    def use(self, *keys: str) -> None:
        """Start and end calls one after the other."""
        for key in keys:
            self.pool.give_back(self.take(key))


def test_a_single_agent_can_use_all_connections() -> None:
    limited = Limited()
    for number in range(4):
        limited.take(f"session ada/{number}")
    assert limited.closed == []
    with pytest.raises(upstream_pool.TooManyError, match="4 connections are open and have calls under way"):
        limited.take("session ada/4")


def test_an_agent_at_its_share_closes_only_its_own_connections() -> None:
    limited = Limited()
    limited.use("session bob/1", "session bob/2", "session ada/1", "session ada/2", "session ada/3")
    assert limited.closed == ["session ada/1"]


def test_an_agent_below_its_share_closes_a_connection_of_an_agent_above_it() -> None:
    limited = Limited()
    limited.use("session bob/1", "session ada/1", "session ada/2", "session ada/3", "session bob/2")
    assert limited.closed == ["session ada/1"]


def test_an_agent_with_a_busy_share_is_refused_and_others_keep_their_connections() -> None:
    limited = Limited()
    limited.use("session bob/1", "session bob/2")
    for session in ("1", "2"):
        limited.take(f"session ada/{session}")
    with pytest.raises(
        upstream_pool.TooManyError, match="ada has 2 of the 4 connections that max_connections"
    ):
        limited.take("session ada/3")
    assert limited.closed == []


def test_an_agent_with_all_connections_yields_to_a_waiting_agent() -> None:
    limited = Limited()
    held = [limited.take(f"session ada/{session}") for session in range(4)]
    with pytest.raises(upstream_pool.TooManyError):
        limited.take("session bob/1")

    limited.pool.give_back(held.pop())
    assert limited.closed == ["session ada/3"]
    with pytest.raises(upstream_pool.TooManyError, match="ada has 3 of the 4"):
        limited.take("session ada/4")
    limited.take("session bob/1")

    # No caller is waiting any longer.
    limited.pool.give_back(held.pop())
    assert limited.closed == ["session ada/3"]
