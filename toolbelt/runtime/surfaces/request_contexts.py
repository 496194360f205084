"""The context of a request: its bearer, and the current state of the agent and session, read by one query.

Contexts are read on event loops, without a thread and a second query; only the two checks at the end query again. If
anything is not cached in this process, or the request must be refused, the context is None, and callers fall back to
`credentials` and `snapshots` in a thread.

While the database cannot be read, `RequestContexts.last_known` returns the result of the last probe for the same token,
agent and session, for up to `TOOLBELT_STALE_SECONDS`, unless this process has read or committed anything newer. Tokens
and grants still expire on time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import structlog

from toolbelt import conf
from toolbelt.core import api_tokens, errors, request_key
from toolbelt.core.rules import resolution
from toolbelt.runtime import credentials, surfaces
from toolbelt.runtime.surfaces import snapshots
from toolbelt.store import commits, state_probe

# Contexts of agents and sessions, for one catalog.
MAX_CONTEXTS = 8192
# The last probes, per token, agent and session.
MAX_LAST_PROBES = 16_384
# How long a fallback query may take before the last known state is used, and how long no other is tried then.
FALLBACK_SECONDS, PAUSE_SECONDS = 1.5, 1.0

RequestKey = request_key.RequestKey
T = TypeVar("T")

_log = structlog.get_logger(__name__)


class RequestContext(NamedTuple):
    """The bearer and the snapshot of a request, what the probe read, and the cache key of the resulting surface."""

    probed: state_probe.ProbeResult
    bearer: credentials.Bearer
    snapshot: resolution.Snapshot
    cache_key: tuple[str, surfaces.CacheKey]


@dataclass(slots=True)
class _LastProbe:
    """The result of the last probe, its time (monotonic), and the number of commits in this process before it."""

    probed: state_probe.ProbeResult
    at: float
    commits: int


class RequestContexts:
    """The contexts that this process has cached. For one event loop.

    ``derived`` caches values that depend on the contexts, and is cleared with them.
    """

    def __init__(self, probe: state_probe.StateProbe) -> None:
        self._probe = probe
        self._catalog = ""
        self._contexts: dict[Hashable, RequestContext] = {}
        self._outage = ""
        self.derived: dict[Hashable, Any] = {}
        self._last_probes: dict[Hashable, _LastProbe] = {}
        # The newest state that any probe read of a token, an agent or a session.
        self._newest: dict[Hashable, Hashable] = {}
        self._commits = 0
        self._notifier = commits.CommitNotifier(self._note_commit)
        self._next_fallback = 0.0
        self._abandoned: set[asyncio.Task[Any]] = set()

    async def of(self, token: str, key: RequestKey) -> RequestContext | None:
        """Return the context of a request, if it is cached and the token is valid for it. Uses one query.

        The fields of the key are well-formed.
        """
        if not token.isascii() or not token.isprintable():
            # No token contains such characters, and not every database accepts them.
            return None
        commits = self._commits
        try:
            probed = await self._probe.read(api_tokens.prefix(token), key.agent, key.session)
        except state_probe.UnreachableError as error:
            # Logged once per outage: every request notices it.
            if str(error) != self._outage:
                self._outage = str(error)
                _log.warning(
                    "database unreachable from the event loop: falling back to Django", error=str(error)
                )
            return None
        self._outage = ""
        context = self._context(token, key, probed) if probed is not None else None
        self._record(token, key, probed, context, commits)
        return context

    async def close(self) -> None:
        """Close the probe's connection."""
        await self._probe.close()

    @property
    def is_offline(self) -> bool:
        """Return whether the last probe could not read the database."""
        return bool(self._outage)

    def last_known(self, token: str, key: RequestKey) -> RequestContext | None:
        """Return the last known context of a request, or None if there is none that may still be used."""
        last = self._last_probes.get((token, key.agent, key.session))
        if last is None or last.commits != self._commits:
            return None
        if time.monotonic() - last.at > conf.STALE_SECONDS or not conf.STALE_SECONDS:
            return None
        if any(self._newest.get(name) != state for name, state in _states(token, key, last.probed)):
            return None
        return self._context(token, key, last.probed)

    async def try_database(self, query: Callable[[], Awaitable[T]]) -> T | None:
        """Run a fallback query. Return None if the database is unavailable or slow, or was a moment ago."""
        loop = asyncio.get_running_loop()
        if loop.time() < self._next_fallback:
            return None

        async def run() -> T:
            return await query()

        task = loop.create_task(run())
        self._abandoned.add(task)
        task.add_done_callback(self._finished)
        done, _ = await asyncio.wait({task}, timeout=FALLBACK_SECONDS)
        if done:
            try:
                return task.result()
            except errors.Unavailable:
                pass
        self._next_fallback = loop.time() + PAUSE_SECONDS
        return None

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._abandoned.discard(task)
        if not task.cancelled():
            # The caller may have stopped waiting: retrieve the exception, so that asyncio does not log it.
            task.exception()

    def _note_commit(self) -> None:
        # The last probes may be outdated.
        self._commits += 1

    def _record(
        self,
        token: str,
        key: RequestKey,
        probed: state_probe.ProbeResult | None,
        context: RequestContext | None,
        commits: int,
    ) -> None:
        """Keep the result of a probe for an outage, unless the request was refused."""
        last_key = token, key.agent, key.session
        if probed is None or context is None:
            self._last_probes.pop(last_key, None)
            states = _states(token, key, probed) if probed is not None else [(_name_of(token), None)]
            self._newest.update({name: state for name, state in states if name in self._newest})
            return
        last = self._last_probes.get(last_key)
        if last is not None and last.probed is probed:
            last.at, last.commits = time.monotonic(), commits
            return
        if len(self._last_probes) >= MAX_LAST_PROBES:
            self._last_probes.clear()
            self._newest.clear()
        self._last_probes[last_key] = _LastProbe(probed, time.monotonic(), commits)
        self._newest.update(_states(token, key, probed))

    def _context(self, token: str, key: RequestKey, probed: state_probe.ProbeResult) -> RequestContext | None:
        """Return the context of a request: the previous one, if the probe read the same state."""
        context_key = (token, key.agent, key.session, key.subagent)
        previous = self._contexts.get(context_key)
        is_named = may_be_named(key.request_id, probed.state)
        if (
            previous is not None
            and previous.probed == probed
            and not is_named
            and not snapshots.has_expired(previous.snapshot)
        ):
            return previous if credentials.is_still_valid(probed.token) else None
        bearer = credentials.verify(token, probed.token)
        if bearer is None or (bearer.kind == "agent" and bearer.agent != key.agent):
            return None
        snapshot = snapshots.cached(probed.state, key)
        if snapshot is None or not _may_ask_for(key.subagent, bearer, snapshot):
            return None
        cache_key = (snapshot.catalog.stamp, surfaces.cache_key(snapshot, probed.state.agent_stamp))
        context = RequestContext(probed, bearer, snapshot, cache_key)
        if not may_be_named(key.request_id, probed.state):
            self._remember(context_key, context)
        return context

    def _remember(self, context_key: Hashable, context: RequestContext) -> None:
        if context.cache_key[0] != self._catalog or len(self._contexts) >= MAX_CONTEXTS:
            # Contexts keep their catalog alive, which is large: drop them once it is no longer the current one.
            self._contexts.clear()
            self.derived.clear()
            self._catalog = context.cache_key[0]
        self._contexts[context_key] = context


def _name_of(token: str) -> Hashable:
    return "token", api_tokens.prefix(token)


def _states(
    token: str, key: RequestKey, probed: state_probe.ProbeResult
) -> Iterator[tuple[Hashable, Hashable]]:
    """Yield each part of the state on which an answer depends, with its name."""
    stored, state = probed
    yield (
        _name_of(token),
        (stored.digest, stored.token.is_owner_active, stored.token.revoked, stored.token.expires),
    )
    yield "catalog", state.catalog_stamp
    yield ("agent", state.agent_id), state.agent_stamp
    yield ("session", state.agent_id, key.session), (state.loadout, state.state)


def may_be_named(request_id: str | None, state: state_probe.ProbedState) -> bool:
    """Return whether the session's state may contain the request's id: its surface may then differ from all others.

    An id can only be hidden from a text search by a backslash escape.
    """
    return (
        request_id is not None
        and state.state is not None
        and (request_id in state.state or "\\" in state.state)
    )


def _may_ask_for(subagent: str | None, bearer: credentials.Bearer, snapshot: resolution.Snapshot) -> bool:
    """Return whether the bearer may ask for this kind of subagent, as :func:`check_subagent` does."""
    return subagent is None or bearer.kind == "operator" or subagent in snapshot.agent.subagent_kinds


def check_subagent(bearer: credentials.Bearer, key: RequestKey) -> None:
    """Raise Refused for a kind of subagent that the agent's own token may not request. Operators may request any."""
    if key.subagent is None or bearer.kind == "operator":
        return
    snapshot, _ = snapshots.take(RequestKey(key.agent, subagent=key.subagent))
    kinds = snapshot.agent.subagent_kinds
    if key.subagent not in kinds:
        may = f"it may ask for {', '.join(kinds)}" if kinds else "it may ask for none"
        raise errors.Refused(
            f"{key.agent} may not ask for a subagent of the kind {key.subagent}: {may}."
            " An operator can change that, in its subagent_kinds."
        )


def session_loadouts(bearer: credentials.Bearer, agent: str) -> tuple[str, ...] | None:
    """Return the loadouts that this bearer may equip a session of the agent with; None: any."""
    if bearer.kind == "operator":
        return None
    snapshot, _ = snapshots.take(RequestKey(agent))
    return snapshot.agent.session_loadouts
