"""Conversations: what they have loaded, and changing that.

A session is stored from its first load, or from when it was equipped with its own loadout. Evicting one resets it to
the agent's initial toolkits. Agents load and unload: see toolbelt.runtime.calls.own_tools.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from toolbelt.control import writing
from toolbelt.control.agents import connection_cleanup
from toolbelt.core import errors, keys, loadouts, sessions
from toolbelt.store import agent_sessions as rows
from toolbelt.store import clock, snapshots

StoredSession = rows.StoredSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some of the sessions, the last changed first, and the number of all sessions."""

    sessions: Sequence[StoredSession]
    total: int


def page(
    agent: str | None = None,
    *,
    offset: int = 0,
    limit: int = 50,
    since: dt.datetime | None = None,
    until: dt.datetime | None = None,
) -> Page:
    """Return sessions, of one agent or of all, that last changed in this time; raise errors.NotFound for an unknown
    agent.
    """
    agent_id = None if agent is None else _agent(agent).agent_id
    page_, total = rows.page(agent_id, offset, limit, since=since, until=until)
    return Page(sessions=page_, total=total)


def read(agent: str, session: str) -> StoredSession:
    """Return one session; raise errors.NotFound if nothing is stored for it."""
    session_ = find(agent, session)
    if session_ is None:
        raise _unknown(session)
    return session_


def find(agent: str, session: str) -> StoredSession | None:
    """Return one session, or None if nothing is stored for it; raise errors.NotFound for an unknown agent."""
    agent_id = _agent(agent).agent_id
    return None if sessions.id_problem(session) else rows.find(agent_id, session)


def equip(
    write: writing.Write,
    agent: str,
    session: str,
    loadout: str,
    *,
    was: str | None = None,
    among: Collection[str] | None = None,
) -> writing.Change:
    """Replace the agent's loadout in this session; empty: use the agent's again.

    ``was``: the one that you saw. ``among``: the only ones that may be chosen or given back, for an agent that equips
    itself. Raise Invalid, NotFound, Refused for a loadout that is not among them, or Stale.
    """
    if problem := sessions.id_problem(session):
        raise errors.Invalid([errors.Problem(path="session", message=problem)])
    with writing.begin():
        current = _agent(agent)
        if loadout and not loadouts.exists(current.catalog.loadouts, loadout):
            raise errors.NotFound("loadout", loadout, loadouts.all_names(current.catalog))
        if not _may(loadout, among):
            raise _refused(agent, f"give a session the loadout {loadout}", among)

        def decide(session_: sessions.Session) -> tuple[tuple[str, bool], sessions.Session | None]:
            if not _may(session_.loadout, among):
                doing = f"replace the loadout {session_.loadout} of session {session}"
                raise _refused(agent, doing, among)
            if was is not None and session_.loadout != was:
                raise errors.Stale(
                    f"The loadout of session {session}",
                    was or None,
                    session_.loadout or None,
                    by=writing.author(write, "session", agent, session),
                )
            # An operator's choice stays the operator's; a loadout that an operator sets again becomes one.
            by_agent = (
                bool(loadout) and among is not None and (session_.by_agent or session_.loadout != loadout)
            )
            equipped = dataclasses.replace(session_, loadout=loadout, by_agent=by_agent)
            return (session_.loadout, equipped == session_), equipped if equipped != session_ else None

        before, is_same = rows.change(current.agent_id, session, decide)
        if is_same:
            return writing.Change(entry=None, before=before, after=loadout)
        entry = writing.record(
            write,
            "session",
            agent,
            action="session.equip",
            key=session,
            before=before or None,
            after=loadout or None,
        )
    return writing.Change(entry=entry, before=before, after=loadout)


def evict(
    write: writing.Write, agent: str, session: str, *, among: Collection[str] | None = None
) -> writing.Change:
    """Delete what a session has loaded, and its loadout, and close its connections to upstream servers.

    ``among``: the only loadouts that may be deleted, for an agent that evicts its own session, whose labels stay. Raise
    NotFound for a session of which nothing is stored, or Refused for one with a loadout that is not among them.
    """

    def check(session_: sessions.Session) -> None:
        if not _may(session_.loadout, among):
            doing = f"evict session {session}, which has the loadout {session_.loadout}"
            raise _refused(agent, doing, among)

    with writing.begin():
        current = _agent(agent)
        if sessions.id_problem(session):
            raise _unknown(session)
        stored = rows.forget(current.agent_id, session, check, keep_labels=among is not None)
        has_connections = connection_cleanup.end_session(agent, session)
        if stored is None and not has_connections:
            raise _unknown(session)
        before = _contents(stored.session if stored is not None else sessions.Session(key=session))
        entry = writing.record(
            write, "session", agent, action="session.evict", key=session, before=before, after=None
        )
    return writing.Change(entry=entry, before=before, after=None)


def clear_label(write: writing.Write, agent: str, session: str, label: str) -> writing.Change:
    """Remove a label from a session, so that rules judge its calls as if it had never been brought; the next call that
    brings it sets it again.

    Raise NotFound for a session or a label that there is not.
    """

    def remove(session_: sessions.Session) -> tuple[tuple[list[str], list[str]], sessions.Session]:
        kept = tuple(each for each in session_.labels if each.name != label)
        if len(kept) == len(session_.labels):
            raise errors.NotFound("label", label, sessions.label_names(session_))
        after = dataclasses.replace(session_, labels=kept)
        return (sorted(sessions.label_names(session_)), sorted(sessions.label_names(after))), after

    with writing.begin():
        current = _agent(agent)
        if sessions.id_problem(session) or rows.find(current.agent_id, session) is None:
            raise _unknown(session)
        before, after = rows.change(current.agent_id, session, remove)
        entry = writing.record(
            write,
            "session",
            agent,
            action="session.clear",
            key=session,
            before={"labels": before},
            after={"labels": after},
        )
    return writing.Change(entry=entry, before=before, after=after)


def prune(age: dt.timedelta) -> int:
    """Delete the sessions whose loads last changed longer ago than this; return their number."""
    return rows.prune(clock.now() - age)


def _agent(agent: str) -> snapshots.StoredState:
    if not agent.isprintable():
        raise errors.NotFound("agent", agent)
    current = snapshots.find(agent, None)
    if current.agent.archived:
        raise errors.Archived(agent)
    return current


def _may(loadout: str, among: Collection[str] | None) -> bool:
    # An agent may not remove a loadout that it may not choose: it may hold an operator's denials.
    return not loadout or among is None or keys.fold(loadout) in map(keys.fold, among)


def _refused(agent: str, doing: str, among: Collection[str] | None) -> errors.Refused:
    return errors.Refused(
        f"{agent} may not {doing}. Its session_loadouts are {', '.join(among or ()) or 'empty'}; an operator can"
        " change them."
    )


def _unknown(session: str) -> errors.NotFound:
    # Names of other sessions are not suggested: they may identify conversations.
    missing = errors.NotFound("session", session)
    missing.args = (
        f"There is no session named {session!r}, or its agent has not loaded anything in it yet.",
    )
    return missing


def _contents(session: sessions.Session) -> dict[str, Any]:
    loaded = [change.name for change in session.changes if change.on]
    contents = {"loaded": loaded, "loadout": session.loadout or None}
    labels = [label.name for label in session.labels]
    return {**contents, "labels": labels} if labels else contents
