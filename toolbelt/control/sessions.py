"""Which conversations have loaded what, and what may be done about it?

A session is kept from its first load on, or from when it was equipped with a loadout of its own. Evicting one lets it
begin anew, with the agent's initial toolkits alone. Who loads and unloads are agents: see toolbelt.runtime.meta_tools.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from toolbelt.control import actors, writing
from toolbelt.core import errors, keys, loadouts, sessions
from toolbelt.store import audit, snapshots
from toolbelt.store import sessions as rows

Kept = rows.Kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some of the sessions, the last changed first, and how many there are in all."""

    sessions: Sequence[Kept]
    total: int


def listed(agent: str | None = None, *, offset: int = 0, limit: int = 50) -> Page:
    """List sessions, of one agent or of all. Raises errors.NotFound for an unknown agent."""
    found, total = rows.page(None if agent is None else _agent(agent).agent_id, offset, limit)
    return Page(sessions=found, total=total)


def read(agent: str, session: str) -> Kept:
    """Give one session. Raises errors.NotFound for one of which nothing is kept."""
    found = find(agent, session)
    if found is None:
        raise _unknown(session)
    return found


def find(agent: str, session: str) -> Kept | None:
    """Give one session, None where nothing is kept of it. Raises errors.NotFound for an unknown agent."""
    agent_id = _agent(agent).agent_id
    return None if sessions.id_problem(session) else rows.find(agent_id, session)


def equip(
    actor: actors.Actor,
    agent: str,
    session: str,
    loadout: str,
    *,
    was: str | None = None,
    among: Collection[str] | None = None,
    reason: str = "",
    batch: uuid.UUID | None = None,
    undoes: int | None = None,
) -> writing.Change:
    """Let a loadout stand in for the agent's in this session; empty: the agent's own counts again.

    ``was``: the one that you saw. ``among``: the only ones that may be taken, and given back, for an agent that equips
    itself. Raises Invalid, NotFound, Refused for a loadout that is not among them, and Stale.
    """
    if problem := sessions.id_problem(session):
        raise errors.Invalid([errors.Problem(path="session", message=problem)])
    with writing.begin():
        found = _agent(agent)
        if loadout and not loadouts.exists(found.catalog.loadouts, loadout):
            raise errors.NotFound("loadout", loadout, loadouts.all_names(found.catalog))
        if not _may(loadout, among):
            raise _refused(agent, f"equip a session with {loadout}", "take", among)

        def judge(held: sessions.Session) -> tuple[tuple[str, bool], sessions.Session | None]:
            if not _may(held.loadout, among):
                raise _refused(agent, f"take {held.loadout} from session {session}", "give back", among)
            if was is not None and held.loadout != was:
                raise errors.Stale(f"The loadout of session {session}", was or None, held.loadout or None)
            # What an operator put on stays an operator's; what an operator puts on again becomes one's.
            by_agent = bool(loadout) and among is not None and (held.by_agent or held.loadout != loadout)
            wanted = dataclasses.replace(held, loadout=loadout, by_agent=by_agent)
            return (held.loadout, wanted == held), wanted if wanted != held else None

        before, is_same = rows.change(found.agent_id, session, judge)
        if is_same:
            return writing.Change(entry=None, before=before, after=loadout)
        entry = audit.record(
            actor=actor.name,
            via=actor.via,
            action="session.equip",
            subject_kind="session",
            subject_key=agent,
            key=session,
            before=before or None,
            after=loadout or None,
            reason=reason,
            batch=batch,
            undoes=undoes,
        )
    return writing.Change(entry=entry, before=before, after=loadout)


def evict(
    actor: actors.Actor,
    agent: str,
    session: str,
    *,
    among: Collection[str] | None = None,
    reason: str = "",
) -> writing.Change:
    """Forget what a session has loaded, and its loadout.

    ``among``: the only loadouts that may be forgotten, for an agent that evicts its own session. Raises NotFound for a
    session of which nothing is kept, and Refused for one with a loadout that is not among them.
    """

    def check(held: sessions.Session) -> None:
        if not _may(held.loadout, among):
            doing = f"evict session {session}, which is equipped with {held.loadout}"
            raise _refused(agent, doing, "give back", among)

    with writing.begin():
        found = _agent(agent)
        was = None if sessions.id_problem(session) else rows.forget(found.agent_id, session, check)
        if was is None:
            raise _unknown(session)
        before = _told(was.session)
        entry = audit.record(
            actor=actor.name,
            via=actor.via,
            action="session.evict",
            subject_kind="session",
            subject_key=agent,
            key=session,
            before=before,
            after=None,
            reason=reason,
        )
    return writing.Change(entry=entry, before=before, after=None)


def prune(age: dt.timedelta) -> int:
    """Forget the sessions whose loads were last changed longer ago than this; say how many."""
    return rows.prune(timezone.now() - age)


def _agent(agent: str) -> snapshots.Found:
    if not agent.isprintable():
        raise errors.NotFound("agent", agent)
    found = snapshots.find(agent, None)
    if found.agent.archived:
        raise errors.Archived(agent)
    return found


def _may(loadout: str, among: Collection[str] | None) -> bool:
    # What an agent may not put on it may not take off either: that one may hold an operator's denials.
    return not loadout or among is None or keys.fold(loadout) in map(keys.fold, among)


def _refused(agent: str, doing: str, way: str, among: Collection[str] | None) -> errors.Refused:
    return errors.Refused(
        f"{agent} may not {doing}: it may {way} {', '.join(among or ()) or 'none'}."
        " An operator can change that, in its session_loadouts."
    )


def _unknown(session: str) -> errors.NotFound:
    # Other sessions' names are not offered: they may say whose conversations they are.
    return errors.NotFound("session that has loaded anything", session)


def _told(session: sessions.Session) -> dict[str, Any]:
    loaded = [change.name for change in session.changes if change.on]
    return {"loaded": loaded, "loadout": session.loadout or None}
