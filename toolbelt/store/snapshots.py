"""Everything that one resolution needs, in a fixed number of queries: one, if nothing changed.

Catalog and agents are cached in process by the stamps of the state from which they were read. The database creates the
stamps, so a cached value is never wrong, only unused. A value that is read again is cached only if the stamps were the
same before and after reading it.
"""

from __future__ import annotations

import contextlib
import contextvars
import datetime as dt
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from django.db import DEFAULT_DB_ALIAS, connection, transaction

from toolbelt import conf, models
from toolbelt.core import agents as consumers
from toolbelt.core import caches, errors, rollouts, toolkit_hooks
from toolbelt.core import catalog as values
from toolbelt.core import sessions as conversations
from toolbelt.core.rules import resolution
from toolbelt.store import agent_sessions, agents, clock, revisions, state_probe
from toolbelt.store import catalog as rows

# How often to read again what changed while it was being read, before locking writers out.
TRIES = 3
# Each takes a few kilobytes.
MAX_AGENTS = 8192
# If more agents than this are missing in the cache, all are read, which is faster than naming each.
MAX_NAMED = 200
# The current one, and the one before it for requests that still use it.
MAX_CATALOGS = 2

_Slot = tuple[str, int, str, str]
_catalogs: caches.LruCache[tuple[str, str], values.Catalog] = caches.LruCache(MAX_CATALOGS)
_agents: caches.LruCache[_Slot, consumers.Agent] = caches.LruCache(MAX_AGENTS)
# The agents in the new arms of roll-outs.
_in_arms: caches.LruCache[_Slot, consumers.Agent] = caches.LruCache(MAX_AGENTS)
_compiling = threading.Lock()
_hooks: toolkit_hooks.HooksByToolkit = {}
_watcher: Callable[[values.Catalog], object] | None = None
# The catalog that was compiled last, and the one of which the watcher was told last: the same, if no block has ended.
_newest: values.Catalog | None = None
_watched: values.Catalog | None = None


@dataclass(frozen=True, slots=True)
class _Tried:
    """What was read within a transaction that will be rolled back: catalogs by their stamps, and agents."""

    catalogs: dict[str, values.Catalog] = field(default_factory=dict)
    agents: dict[_Slot, consumers.Agent] = field(default_factory=dict)


_tried: contextvars.ContextVar[_Tried | None] = contextvars.ContextVar("tried", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredState:
    """The stored state from which a request is answered. ``session`` is None if none was requested.

    ``catalog`` and ``agent`` are as they are now; ``written`` is the agent as it is stored: what has expired
    (``expired``) may still be stored until the next write. The stamps identify what is stored, not what has expired
    since. In a session that is in the new arm of a roll-out, ``agent`` has its changes until its end.
    """

    catalog: values.Catalog
    agent: consumers.Agent
    session: conversations.Session | None
    number: int
    catalog_stamp: str
    agent_stamp: str
    agent_id: int
    written: consumers.Agent
    expired: Mapping[str, consumers.End]

    @property
    def state(self) -> Hashable:
        """Return a key of this state: equal states have equal answers to any request of the agent and session.

        A state without stamps from the database equals no other.
        """
        if not (self.catalog_stamp and self.agent_stamp):
            return object()
        in_arm = self.agent.arm is not None
        return self.catalog.stamp, self.agent_stamp, frozenset(self.expired), in_arm, self.session


class Present(NamedTuple):
    """An agent as it is now, and a key of this state; None if the state has no stamp, or is tried only."""

    agent: consumers.Agent
    state: Hashable | None


def find(agent_key: str, session_key: str | None) -> StoredState:
    """Return everything from which a request of this agent, in this session, is answered; raise errors.NotFound."""
    probe = _probe(agent_key, session_key)
    for _ in range(TRIES):
        stored = _compiled(probe.catalog_number, probe.catalog_stamp)
        if stored is not None and (agent := _cached_agent(_slot(probe, connection.alias))) is not None:
            return _stored_state(probe, stored, agent, session_key, connection.alias)
        read = agents.load(probe.agent_id)
        next_probe = _probe(agent_key, session_key)
        if stored is not None and read is not None and next_probe.stamps == probe.stamps:
            if all(probe.stamps):
                _cache_agent(_slot(probe, connection.alias), read)
            return _stored_state(next_probe, stored, read, session_key, connection.alias)
        probe = next_probe
    with transaction.atomic():
        revisions.lock()
        probe = _probe(agent_key, session_key)
        read = agents.load(probe.agent_id)
        if read is None:
            raise errors.NotFound("agent", agent_key)
        stored = rows.load(probe.catalog_number, probe.catalog_stamp, _hooks)
        return _stored_state(probe, stored, read, session_key, connection.alias)


def of(
    catalog: values.Catalog,
    agent: consumers.Agent,
    *,
    session: conversations.Session | None = None,
    request_id: str | None = None,
    subagent: str | None = None,
) -> resolution.Snapshot:
    """Return the snapshot of an agent with a catalog, which may be proposed ones; by default, outside any session."""
    return resolution.Snapshot(
        catalog=catalog,
        agent=agent,
        session=session,
        request_id=request_id,
        subagent=subagent,
        kind_loadouts=conf.KIND_LOADOUTS,
    )


def cached(probe: state_probe.ProbedState, session_key: str | None) -> StoredState | None:
    """Return the result of :func:`find` after this probe, if it is cached; makes no query, and may be used in any
    thread.
    """
    if not all(probe.stamps):
        return None
    stored = _catalogs.get((DEFAULT_DB_ALIAS, probe.catalog_stamp))
    agent = _agents.get(_slot(probe, DEFAULT_DB_ALIAS))
    if stored is None or agent is None:
        return None
    return _stored_state(probe, stored, agent, session_key, DEFAULT_DB_ALIAS)


def catalog() -> values.Catalog:
    """Return the current catalog."""
    return _as_of(catalog_as_written(), clock.now())


def present(*, archived: bool = False) -> list[Present]:
    """Return the agents that are not archived, or only those that are, in order, as they are now.

    Three queries if nothing changed: only agents are read for which, or for whose catalog, something was written.
    """
    probes = _probe_agents(archived)
    cached = {probe.agent_id: _cached_agent(_slot(probe, connection.alias)) for probe in probes}
    absent = [agent_id for agent_id, agent in cached.items() if agent is None]
    read: dict[int, consumers.Agent] = {}
    tried = _tried.get()
    if absent:
        read = agents.load_several(absent if len(absent) <= MAX_NAMED else None)
        again = {probe.agent_id: probe.stamps for probe in _probe_agents(archived)}
        for probe in probes:
            agent = read.get(probe.agent_id)
            if agent is not None and all(probe.stamps) and again.get(probe.agent_id) == probe.stamps:
                _cache_agent(_slot(probe, connection.alias), agent)
    now = clock.now()
    result = []
    for probe in probes:
        agent = cached[probe.agent_id] or read.get(probe.agent_id)
        if agent is not None and agent.archived is archived:
            slot = _slot(probe, connection.alias)
            is_known = all(probe.stamps) and (tried is None or slot not in tried.agents)
            result.append(Present(agent.as_of(now), (*slot, tuple(agent.expired(now))) if is_known else None))
    return result


def catalog_as_written() -> values.Catalog:
    """Return the current catalog as it is stored: blocks that have ended may be stored until the next write."""
    for _ in range(TRIES):
        stored = _compiled(*_probe_catalog())
        if stored is not None:
            return stored
    with transaction.atomic():
        revisions.lock()
        return rows.load(*_probe_catalog(), _hooks)


def agents_with(kind: str, name: str) -> list[consumers.Agent]:
    """Return the agents that name this toolkit or tool, or that this sub-app embeds."""
    return agents.referring_to(kind, name)


def register_hooks(hooks: toolkit_hooks.HooksByToolkit) -> None:
    """Set the hooks of toolkits in code for this process, and clear the cache, which was filled without them."""
    global _hooks
    _hooks = hooks
    forget()


def watch(watcher: Callable[[values.Catalog], object]) -> None:
    """Call ``watcher`` with each new catalog that this process compiles, and when blocks in it have ended; it must be
    fast and must not request a catalog.
    """
    global _watcher
    _watcher = watcher


@contextlib.contextmanager
def trying() -> Iterator[None]:
    """Keep the catalogs and agents that are read within the block to it: what it writes is rolled back, so nothing may
    be disconnected for it, and nothing that others use makes room for it.
    """
    token = _tried.set(_Tried())
    try:
        yield
    finally:
        _tried.reset(token)


def is_trying() -> bool:
    """Return whether what this thread writes is rolled back."""
    return _tried.get() is not None


def forget() -> None:
    """Clear the caches, as in a new process. For tests and measurements."""
    _catalogs.clear()
    _agents.clear()
    _in_arms.clear()


def _compiled(number: int, stamp: str) -> values.Catalog | None:
    """Return the catalog of this state: cached, or compiled by one thread for all; None if the state has changed."""
    global _newest
    if (cached := _catalogs.get((connection.alias, stamp))) is not None:
        return cached
    if stamp and (tried := _tried.get()) is not None:
        if stamp not in tried.catalogs:
            tried.catalogs[stamp] = rows.load(number, stamp, _hooks)
        return tried.catalogs[stamp]
    with _compiling:
        if (cached := _catalogs.get((connection.alias, stamp))) is not None:
            return cached
        read = rows.load(number, stamp, _hooks)
        if _probe_catalog() != (number, stamp):
            return None
        if stamp:
            _catalogs.put((connection.alias, stamp), read)
        _newest = read
        _tell(read.as_of(clock.now()))
        return read


def _cached_agent(slot: _Slot) -> consumers.Agent | None:
    tried = _tried.get()
    found = tried.agents.get(slot) if tried is not None else None
    return found or _agents.get(slot)


def _cache_agent(slot: _Slot, agent: consumers.Agent) -> None:
    if (tried := _tried.get()) is not None:
        tried.agents[slot] = agent
    else:
        _agents.put(slot, agent)


def _as_of(stored: values.Catalog, now: dt.datetime) -> values.Catalog:
    """Return a compiled catalog as it is at ``now``."""
    present = stored.as_of(now)
    if present is not stored and stored is _newest and present is not _watched:
        _tell(present)
    return present


def _tell(present: values.Catalog) -> None:
    """Call the watcher, if there is one."""
    global _watched
    _watched = present
    if _watcher is not None:
        _watcher(present)


def _probe(agent_key: str, session_key: str | None) -> state_probe.ProbedState:
    with connection.cursor() as cursor:
        cursor.execute(state_probe.AT_AGENT, [session_key, agent_key])
        row = cursor.fetchone()
    if row is None:
        raise errors.NotFound("agent", agent_key, models.Agent.objects.values_list("key", flat=True))
    return state_probe.ProbedState(*row)


def _probe_agents(archived: bool) -> list[state_probe.ProbedState]:
    catalog_number, catalog_stamp = _probe_catalog()
    stamps = {
        agent_id: (number, stamp)
        for agent_id, number, stamp in models.AgentRevision.objects.values_list("agent_id", "number", "stamp")
    }
    ids = models.Agent.objects.filter(archived=archived).values_list("id", flat=True)
    return [
        state_probe.ProbedState(
            agent_id, *stamps.get(agent_id, (0, "")), catalog_number, catalog_stamp, None, None
        )
        for agent_id in ids
    ]


def _probe_catalog() -> tuple[int, str]:
    row = models.Revision.objects.values_list("catalog_number", "catalog_stamp").first()
    return row or (0, "")


def _slot(probe: state_probe.ProbedState, alias: str) -> _Slot:
    # The catalog's stamp is included because an agent names tools and toolkits by key, and keys may change.
    return alias, probe.agent_id, probe.agent_stamp, probe.catalog_stamp


def _in_arm(
    probe: state_probe.ProbedState, stored: values.Catalog, agent: consumers.Agent, session: str, alias: str
) -> consumers.Agent:
    """Return an agent with a roll-out as it is in a session."""
    rollout = agent.rollout
    if rollout is None or not rollouts.includes(rollout, agent.key, session):
        return agent
    # As an expiry of a switch, its end needs no write to take effect.
    if rollout.ends is not None and rollout.ends <= clock.now():
        return agent
    slot = _slot(probe, alias)
    found = _in_arms.get(slot)
    if found is None:
        found = rollouts.changed(agent, rollout, stored)
        if all(probe.stamps) and _tried.get() is None:
            _in_arms.put(slot, found)
    return found


def _stored_state(
    probe: state_probe.ProbedState,
    stored: values.Catalog,
    agent: consumers.Agent,
    session_key: str | None,
    alias: str,
) -> StoredState:
    written = agent
    if agent.rollout is not None and session_key is not None:
        agent = _in_arm(probe, stored, agent, session_key, alias)
    session = None
    if session_key is not None and probe.state is None:
        session = conversations.Session(key=session_key)
    elif session_key is not None:
        session = agent_sessions.value(session_key, probe.loadout or "", probe.state or "{}")
    now = clock.now() if agent.ends or stored.block_ends else None
    expired = agent.expired(now) if now is not None else {}
    return StoredState(
        catalog=_as_of(stored, now) if now is not None else stored,
        agent=agent.as_of(now) if now is not None else agent,
        session=session,
        number=probe.number,
        catalog_stamp=probe.catalog_stamp,
        agent_stamp=probe.agent_stamp,
        agent_id=probe.agent_id,
        written=written,
        expired=expired,
    )
