"""Surfaces: what the model receives for a request, cached for each state."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable

from toolbelt.core import caches, catalog, request_key, sessions, surface
from toolbelt.core.rules import resolution
from toolbelt.runtime.surfaces import snapshots

# The size of each catalog's cache, in active tools: the decision about one takes about 200 bytes (its definition
# belongs to the catalog). A surface without tools counts as SURFACE_SIZE of them.
MAX_CACHED = 500_000
SURFACE_SIZE = 20

CacheKey = tuple[Hashable, ...]


def ask(
    agent: str,
    session: str | None = None,
    request_id: str | None = None,
    message: str | None = None,
    subagent: str | None = None,
) -> surface.Surface:
    """Return the surface of one request: tools, policy text, directive.

    ``agent`` is the agent's key. ``session`` identifies the conversation (None: nothing can be loaded), and
    ``request_id`` the request in it. ``message`` is the user's, sent with the first step only. ``subagent`` is the kind
    of subagent to ask for. Uses one query if nothing has changed since the last request, and never writes.
    """
    return of(request_key.RequestKey(agent, session, request_id, subagent), message)


def of(key: request_key.RequestKey, message: str | None = None) -> surface.Surface:
    """Return the surface of a request, as :func:`ask` does."""
    snapshot, source = snapshots.take(key)
    built = get_or_build(snapshot, source.agent_stamp)
    if message is not None and message.strip():
        return surface.of(built.resolution, snapshot, message, revision=source.number)
    return dataclasses.replace(built, session=key.session, request_id=key.request_id, revision=source.number)


def cache_key(snapshot: resolution.Snapshot, agent_stamp: str) -> CacheKey:
    """Return the key of a surface without a message in its catalog's cache: everything that determines it."""
    # How many switches and overrides have not expired yet: the stamp does not change when one expires.
    ending = len(snapshot.agent.ends)
    kinds = tuple(snapshot.kind_loadouts.items())
    in_arm = snapshot.agent.arm is not None
    return agent_stamp, ending, in_arm, _session_state(snapshot), snapshot.subagent, kinds


def cached(snapshot: resolution.Snapshot, key: CacheKey) -> surface.Surface | None:
    """Return the cached surface without a message, if there is one."""
    return computed(snapshot.catalog).get(key)


def get_or_build(snapshot: resolution.Snapshot, agent_stamp: str) -> surface.Surface:
    """Return the surface without a message, which is built once for each state."""
    is_stamped = snapshot.catalog.stamp and agent_stamp
    if not is_stamped:
        return surface.build(snapshot)
    key = cache_key(snapshot, agent_stamp)
    if (stored := cached(snapshot, key)) is not None:
        return stored
    built = surface.build(snapshot)
    computed(snapshot.catalog).put(key, built)
    return built


def _size(built: surface.Surface) -> int:
    return SURFACE_SIZE + len(built.because)


@catalog.derived
def computed(stored: catalog.Catalog) -> caches.LruCache[CacheKey, surface.Surface]:
    """Return the surfaces that were computed last."""
    return caches.LruCache(MAX_CACHED, _size)


def _session_state(snapshot: resolution.Snapshot) -> CacheKey:
    """Return the part of the session's state that determines the surface of this request."""
    session = snapshot.session
    if session is None:
        return ()
    if not session.changes:
        return session.loadout, session.by_agent
    # In load order, because a budget defers the oldest load first.
    return session.loadout, session.by_agent, sessions.load_order(session, snapshot.request_id)
