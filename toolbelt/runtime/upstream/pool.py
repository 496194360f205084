"""This process's connections to upstream servers, by server and owner.

There is one connection for each owner (see `toolbelt.plugins.upstream.connection_owners`), up to a limit for each
server and one for the process. A connection of an agent or session is closed when it is unused for the server's
``idle`` seconds.

When a limit is reached, a connection without a call is closed for a new one. An agent's share is half of the limit. For
an agent with less, the connection that was unused for the longest time is closed, first among those of agents that have
more than their share. An agent that has its share loses one of its own, or is refused. As long as another agent waits,
which was recently refused, an agent with more than its share gets no new connections, and loses each when its calls
end.
"""

from __future__ import annotations

import functools
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import structlog

from toolbelt.core import connections
from toolbelt.plugins.upstream import backoff, connection, connection_owners, limits, live_connection

# How long an agent counts as waiting after it was refused a connection, in seconds.
WAITING_SECONDS = 60.0

_log = structlog.get_logger(__name__)


class TooManyError(live_connection.UnreachableError):
    """Nothing to fix: the maximum number of connections is open, and each has a running call."""


@dataclass(eq=False, slots=True, kw_only=True)
class Pooled:
    """One connection to the server ``name``, for the owner with this ``key``.

    ``digest`` identifies its configuration. ``running`` counts the calls that it is reserved for, and ``used`` is when
    the last one ended, on the monotonic clock. ``is_fresh``: it was only used to list, so it has no state. ``claim`` is
    the id of this process's claim in the database; empty if there is none.
    """

    name: str
    key: str
    digest: str
    settings: connections.Connection
    server: connection.Server = field(init=False, repr=False)
    running: int = 0
    used: float = field(default_factory=time.monotonic)
    is_fresh: bool = True
    claim: str = ""

    @property
    def agent(self) -> str:
        """Return the agent that holds it; empty for everyone."""
        return connection_owners.agent_of(self.key)

    @property
    def is_idle_closed(self) -> bool:
        """Return whether it is closed when it is idle. The shared connection of a stateless server is not."""
        return self.key != connection_owners.EVERYBODY or self.settings.shared_by(has_session=None) not in (
            "",
            "shared",
        )


Make = Callable[[Pooled, backoff.Backoff], connection.Server]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limit:
    """A limit of connections, for one server or for all (``server`` is empty), with the name of its setting."""

    server: str
    maximum: int
    setting: str

    @property
    def share(self) -> int:
        """Return the number of connections that an agent may have while others wait."""
        return max(1, self.maximum // 2)

    def covers(self, pooled: Pooled) -> bool:
        """Return whether a connection counts toward this limit."""
        return self.server in ("", pooled.name)


class Pool:
    """The connections of one process; for any thread. ``closed`` is called with those that must be closed.

    ``renew`` is called every ``renew_every`` seconds with the connections that are claimed, in a thread of the pool.
    """

    def __init__(
        self,
        closed: Callable[[Sequence[Pooled]], object],
        maximum: Callable[[], int],
        *,
        renew: Callable[[Sequence[Pooled]], object] = lambda claimed: None,
        renew_every: float = 60.0,
    ) -> None:
        self._closed, self._max_connections = closed, maximum
        self._renew, self._renew_every = renew, renew_every
        self._lock = threading.Lock()
        self._pooled: dict[tuple[str, str], Pooled] = {}
        self._backoffs: dict[str, tuple[str, backoff.Backoff]] = {}
        # Until when each agent counts as waiting, by the server of the limit that it met.
        self._waiting: dict[tuple[str, str], float] = {}
        self._wake = threading.Event()
        self._maintenance: threading.Thread | None = None

    def find(self, name: str, key: str, digest: str) -> Pooled | None:
        """Reserve and return the connection of this owner, if there is one with this configuration."""
        with self._lock:
            pooled = self._pooled.get((name, key))
            if pooled is None or pooled.digest != digest:
                return None
            pooled.running += 1
            return pooled

    def take(
        self,
        name: str,
        key: str,
        digest: str,
        settings: connections.Connection,
        make: Make,
        *,
        claim: str = "",
    ) -> Pooled:
        """Reserve and return the connection of this owner, and create it if there is none with this configuration.

        Nothing is sent yet: it connects with the first request. The caller gives it back. Raise TooManyError if a limit
        is reached and no connection may be closed.
        """
        removed: list[Pooled] = []
        try:
            with self._lock:
                pooled = self._pooled.get((name, key))
                if pooled is None or pooled.digest != digest:
                    # With another configuration it is another server, for all owners.
                    removed += self._pop(lambda other: other.name == name and other.digest != digest)
                    pooled = self._adopted(name, key, digest)
                if pooled is None:
                    removed += self._make_room(name, settings, connection_owners.agent_of(key))
                    pooled = self._create(name, key, digest, settings, make)
                pooled.running += 1
                pooled.claim = claim or pooled.claim
                for server in ("", name):
                    self._waiting.pop((server, pooled.agent), None)
        finally:
            if removed:
                self._closed(removed)
        return pooled

    def give_back(self, pooled: Pooled, *, is_fresh: bool = False) -> None:
        """End a reservation; ``is_fresh`` if the connection was only used to list."""
        with self._lock:
            pooled.running -= 1
            pooled.used = time.monotonic()
            pooled.is_fresh = pooled.is_fresh and is_fresh
            removed = self._pop(lambda other: other is pooled) if self._blocks_others(pooled) else []
        self._close(removed)

    def of(self, name: str) -> Sequence[Pooled]:
        """Return the connections to a server, beginning with the one that lists for operators."""
        with self._lock:
            connections_ = [other for other in self._pooled.values() if other.name == name]
        return sorted(connections_, key=lambda other: other.key)

    def all(self) -> Sequence[Pooled]:
        """Return all connections."""
        with self._lock:
            return [*self._pooled.values()]

    def backoff_of(self, name: str) -> backoff.Backoff | None:
        """Return the pause of a server after failures to connect, if it was ever connected to."""
        entry = self._backoffs.get(name)
        return entry[1] if entry is not None else None

    def remove(self, which: Callable[[Pooled], bool]) -> Sequence[Pooled]:
        """Remove connections from the pool and return them, without closing them."""
        with self._lock:
            return self._pop(which)

    def close(self, which: Callable[[Pooled], bool]) -> Sequence[Pooled]:
        """Remove connections from the pool, close them, and return them."""
        removed = self.remove(which)
        self._close(removed)
        return removed

    def forget(self) -> None:
        """Forget everything in a child process: the connections belong to its parent."""
        self._lock, self._wake = threading.Lock(), threading.Event()
        self._pooled.clear()
        self._backoffs.clear()
        self._waiting.clear()
        self._maintenance = None

    def _close(self, removed: Sequence[Pooled]) -> None:
        if removed:
            self._closed(removed)

    def _pop(self, which: Callable[[Pooled], bool]) -> list[Pooled]:
        removed = [other for other in self._pooled.values() if which(other)]
        for other in removed:
            del self._pooled[other.name, other.key]
        return removed

    def _adopted(self, name: str, key: str, digest: str) -> Pooled | None:
        """Return the connection that was opened to list the tools, if it has no state yet: for a person, their own,
        because all others have another account.
        """
        spare_key = connection_owners.shared(connection_owners.person_of(key))
        spare = self._pooled.get((name, spare_key))
        if spare is None or not spare.is_fresh or spare.running or spare.digest != digest:
            return None
        del self._pooled[name, spare_key]
        spare.key = key
        self._pooled[name, key] = spare
        self._wake_maintenance()
        return spare

    def _limits(self, name: str, settings: connections.Connection) -> tuple[_Limit, _Limit]:
        return (
            _Limit(server=name, maximum=settings.max_connections, setting=f"max_connections of {name}"),
            _Limit(server="", maximum=self._max_connections(), setting="TOOLBELT_UPSTREAM_CONNECTIONS"),
        )

    def _make_room(self, name: str, settings: connections.Connection, agent: str) -> list[Pooled]:
        """Remove the connections that must be closed for a new one of this agent."""
        removed: list[Pooled] = []
        for limit in self._limits(name, settings):
            here = [other for other in self._pooled.values() if limit.covers(other) and other not in removed]
            counts = Counter(other.agent for other in here)
            has_share = bool(agent) and counts[agent] >= limit.share
            excess = len(here) - limit.maximum + 1
            others_wait = has_share and self._others_wait(limit, agent)
            if others_wait:
                excess = max(excess, counts[agent] - limit.share + 1)
            if excess <= 0:
                continue
            idle = [other for other in here if not other.running]
            candidates = [other for other in idle if not has_share or other.agent in ("", agent)]
            if len(candidates) < excess:
                if agent and not has_share:
                    now = time.monotonic()
                    self._waiting = {who: until for who, until in self._waiting.items() if until > now}
                    self._waiting[limit.server, agent] = now + WAITING_SECONDS
                others_count = others_wait or counts[agent] < len(here)
                raise _refused(limit, here, agent if has_share and others_count else "")
            candidates.sort(
                key=lambda other: (not other.agent or counts[other.agent] <= limit.share, other.used)
            )
            removed += candidates[:excess]
        for other in removed:
            del self._pooled[other.name, other.key]
        return removed

    def _others_wait(self, limit: _Limit, agent: str) -> bool:
        """Return whether another agent was recently refused a connection because of this limit."""
        now = time.monotonic()
        return any(
            server == limit.server and other != agent and until > now
            for (server, other), until in self._waiting.items()
        )

    def _blocks_others(self, pooled: Pooled) -> bool:
        """Return whether an unused connection exceeds its agent's share while others wait."""
        if not self._waiting or pooled.running or not pooled.agent:
            return False
        return any(
            self._others_wait(limit, pooled.agent)
            and sum(limit.covers(other) and other.agent == pooled.agent for other in self._pooled.values())
            > limit.share
            for limit in self._limits(pooled.name, pooled.settings)
        )

    def _create(
        self, name: str, key: str, digest: str, settings: connections.Connection, make: Make
    ) -> Pooled:
        # A person who is not signed in keeps no one else waiting.
        person = connection_owners.person_of(key)
        of = name if person is None else f"{name} {person}"
        entry = self._backoffs.get(of)
        if entry is None or entry[0] != digest:
            entry = self._backoffs[of] = digest, backoff.Backoff(limits.Limits())
        pooled = Pooled(name=name, key=key, digest=digest, settings=settings)
        pooled.server = make(pooled, entry[1])
        self._pooled[name, key] = pooled
        self._wake_maintenance()
        return pooled

    def _wake_maintenance(self) -> None:
        """Wake the thread that closes idle connections, and start it if necessary."""
        self._wake.set()
        if self._maintenance is None:
            self._maintenance = threading.Thread(
                target=self._close_idle, name="toolbelt-upstream-idle", daemon=True
            )
            self._maintenance.start()

    def _close_idle(self) -> None:
        """Close idle connections and renew claims, until there are no connections."""
        renewed = time.monotonic()
        while True:
            now = time.monotonic()
            with self._lock:
                waits = [*_waits(self._pooled.values(), now)]
                if not waits:
                    self._maintenance = None
                    return
                removed = self._pop(functools.partial(_is_idle, now=now))
                claimed = [other for other in self._pooled.values() if other.claim]
            try:
                self._close(removed)
                if now >= renewed + self._renew_every:
                    renewed = now
                    if claimed:
                        self._renew(claimed)
            except Exception:
                # The loop must continue for the other connections and claims.
                _log.exception("idle upstream connections not closed")
            self._wake.wait(max(0.01, min(*waits, renewed + self._renew_every - now)))
            self._wake.clear()


def _refused(limit: _Limit, here: Sequence[Pooled], agent: str) -> TooManyError:
    """Return the error; ``agent`` is the name of an agent that has used up its share."""
    if agent:
        count = sum(other.agent == agent for other in here)
        return TooManyError(
            f"{agent} has {count} of the {limit.maximum} connections that {limit.setting} allows, all with calls under"
            f" way. Beyond {limit.share}, an agent gets none that others use or wait for."
        )
    return TooManyError(
        f"{len(here)} connections are open and have calls under way, and {limit.setting} allows {limit.maximum}."
    )


def _is_idle(pooled: Pooled, *, now: float) -> bool:
    return pooled.is_idle_closed and not pooled.running and now >= pooled.used + pooled.settings.idle


def _waits(pooled: Iterable[Pooled], now: float) -> Iterable[float]:
    """Yield after how many seconds each connection must be checked again."""
    for other in pooled:
        if other.is_idle_closed:
            yield float(other.settings.idle) if other.running else other.used + other.settings.idle - now
