"""What does the model get for this request? The question that everything else here exists for."""

from __future__ import annotations

import dataclasses
import threading
from collections import OrderedDict
from collections.abc import Hashable

from toolbelt.core import resolution, sessions, surface
from toolbelt.runtime import snapshots

# How much to keep with one catalog, counted in active tools: each takes about 200 bytes for what was decided (its
# definition is the catalog's), and a surface without any about as much as so many of them.
MOST_KEPT = 500_000
OF_A_SURFACE = 20

Slot = tuple[Hashable, ...]

_lock = threading.Lock()


def ask(
    agent: str,
    session: str | None = None,
    request_id: str | None = None,
    message: str | None = None,
    subagent: str | None = None,
) -> surface.Surface:
    """Ask for the surface of one request: tools, policy text, directive.

    ``agent`` is the agent's key; ``session`` names the conversation (None: nothing can be loaded), ``request_id`` the
    request in it; ``message`` is the user's, sent with the first step only; ``subagent`` is a kind to ask on behalf
    of. One query when nothing changed since the last question. Never writes.
    """
    snapshot, found = snapshots.take(agent, session, request_id, subagent)
    kept = resolved(snapshot, found.agent_stamp)
    if message is not None and message.strip():
        return surface.of(kept.resolution, snapshot, message, revision=found.number)
    return dataclasses.replace(kept, session=session, request_id=request_id, revision=found.number)


def slot(snapshot: resolution.Snapshot, agent_stamp: str) -> Slot:
    """Say what a surface without a message is kept under, within its catalog: all that decides about it."""
    # Of what the stamp names, so many switches and overrides are still to end: each end makes it another surface.
    ending = len(snapshot.agent.ends)
    kinds = tuple(snapshot.kind_loadouts.items())
    return agent_stamp, ending, _session_state(snapshot), snapshot.subagent, kinds


def known(snapshot: resolution.Snapshot, slot: Slot) -> surface.Surface | None:
    """Give the surface without a message that is kept in the slot: somebody's who asked the same before."""
    with _lock:
        kept = _kept(snapshot)
        found = kept.get(slot)
        if found is not None:
            kept.move_to_end(slot)
        return found


def resolved(snapshot: resolution.Snapshot, agent_stamp: str) -> surface.Surface:
    """Give the surface without a message; worked out once for each state, and kept with the catalog."""
    stamped = snapshot.catalog.stamp and agent_stamp
    if not stamped:
        return surface.build(snapshot)
    place = slot(snapshot, agent_stamp)
    if (found := known(snapshot, place)) is not None:
        return found
    built = surface.build(snapshot)
    with _lock:
        kept, derived = _kept(snapshot), snapshot.catalog.derived
        if place not in kept:
            derived["surfaces' size"] = derived.get("surfaces' size", 0) + _size(built)
        kept[place] = built
        while derived["surfaces' size"] > MOST_KEPT:
            derived["surfaces' size"] -= _size(kept.popitem(last=False)[1])
    return built


def _size(kept: surface.Surface) -> int:
    return OF_A_SURFACE + len(kept.because)


def _kept(snapshot: resolution.Snapshot) -> OrderedDict[Slot, surface.Surface]:
    found: OrderedDict[Slot, surface.Surface] = snapshot.catalog.derived.setdefault("surfaces", OrderedDict())
    return found


def _session_state(snapshot: resolution.Snapshot) -> Slot:
    """Give what of the session decides: what counts for this request, not who asks."""
    session = snapshot.session
    if session is None:
        return ()
    if not session.changes:
        return session.loadout, session.by_agent
    request = snapshot.request_id
    kinds: tuple[sessions.Kind, ...] = ("toolkit", "plugin", "tool")
    return (session.loadout, session.by_agent, *(sessions.counting(session, kind, request) for kind in kinds))
