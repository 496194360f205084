"""Everything that one resolution needs, in a fixed number of queries: one, when nothing changed.

Catalog and agents are kept in process under the stamps of the state that they were read from, which the database
makes; so a kept value is never wrong, in whichever transaction it was read, only no longer asked for. What is read
anew is kept only if the stamps were the same before and after reading it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from django.db import DEFAULT_DB_ALIAS, connection, transaction

from toolbelt import models
from toolbelt.core import agents as consumers
from toolbelt.core import catalog as values
from toolbelt.core import code, errors
from toolbelt.core import sessions as conversations
from toolbelt.store import agents, caches, clock, looks, revisions, sessions
from toolbelt.store import catalog as rows

# How often to read again what changed while it was being read, before asking the writers to wait.
TRIES = 3
# One takes some kilobytes.
MOST_AGENTS = 8192
# Above so many that are not kept, all are read: that is faster than naming each.
MOST_NAMED = 200
# The current one, and the one before it for whoever is still at work with it.
MOST_CATALOGS = 2

_catalogs: caches.Recent[tuple[str, str], values.Catalog] = caches.Recent(MOST_CATALOGS)
_agents: caches.Recent[tuple[str, int, str, str], consumers.Agent] = caches.Recent(MOST_AGENTS)
_compiling = threading.Lock()
_voices: code.Voices = {}
_watcher: Callable[[values.Catalog], object] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a question is answered from, at this moment. ``session`` is None where none was asked for.

    ``agent`` is as it stands now, ``written`` as its rows are: what is over by now (``over``) may still stand there,
    until somebody writes. The stamps name what is written, and not what has ended since.
    """

    catalog: values.Catalog
    agent: consumers.Agent
    session: conversations.Session | None
    number: int
    catalog_stamp: str
    agent_stamp: str
    agent_id: int
    written: consumers.Agent
    over: Mapping[str, consumers.End]

    @property
    def state(self) -> Hashable:
        """Return what names this state: equal states, equal answers to any question of the agent and session.

        Where the database made no stamps, it equals no other.
        """
        if not (self.catalog_stamp and self.agent_stamp):
            return object()
        return self.catalog_stamp, self.agent_stamp, frozenset(self.over), self.session


class Present(NamedTuple):
    """An agent as it stands at this moment, and a name for this state of it; None: the state has no stamp."""

    agent: consumers.Agent
    state: Hashable | None


def find(agent_key: str, session_key: str | None) -> Found:
    """Find all that a question of this agent, in this session, is answered from. Raises errors.NotFound."""
    look = _look(agent_key, session_key)
    for _ in range(TRIES):
        stored = _compiled(look.catalog_number, look.catalog_stamp)
        if stored is not None and (agent := _agents.get(_slot(look, connection.alias))) is not None:
            return _found(look, stored, agent, session_key)
        read = agents.load(look.agent_id)
        again = _look(agent_key, session_key)
        if stored is not None and read is not None and again.stamps == look.stamps:
            if all(look.stamps):
                _agents.put(_slot(look, connection.alias), read)
            return _found(again, stored, read, session_key)
        look = again
    with transaction.atomic():
        revisions.lock()
        look = _look(agent_key, session_key)
        read = agents.load(look.agent_id)
        if read is None:
            raise errors.NotFound("agent", agent_key)
        stored = rows.load(look.catalog_number, look.catalog_stamp, _voices)
        return _found(look, stored, read, session_key)


def known(look: looks.Look, session_key: str | None) -> Found | None:
    """Give what :func:`find` would find after this look, if it is kept here; no query, from whichever thread."""
    if not all(look.stamps):
        return None
    stored = _catalogs.get((DEFAULT_DB_ALIAS, look.catalog_stamp))
    agent = _agents.get(_slot(look, DEFAULT_DB_ALIAS))
    if stored is None or agent is None:
        return None
    return _found(look, stored, agent, session_key)


def catalog() -> values.Catalog:
    """Give the catalog as it is now."""
    for _ in range(TRIES):
        stored = _compiled(*_look_at_catalog())
        if stored is not None:
            return stored
    with transaction.atomic():
        revisions.lock()
        return rows.load(*_look_at_catalog(), _voices)


def present(*, archived: bool = False) -> list[Present]:
    """Return the agents that are not archived, or else those that are, in order, as they stand at this moment.

    Three queries where nothing changed: those agents are read again of which, or beside which, something was written.
    """
    looks_now = _look_at_agents(archived)
    kept = {look.agent_id: _agents.get(_slot(look, connection.alias)) for look in looks_now}
    absent = [agent_id for agent_id, agent in kept.items() if agent is None]
    read: dict[int, consumers.Agent] = {}
    if absent:
        read = agents.load_several(absent if len(absent) <= MOST_NAMED else None)
        again = {look.agent_id: look.stamps for look in _look_at_agents(archived)}
        for look in looks_now:
            agent = read.get(look.agent_id)
            if agent is not None and all(look.stamps) and again.get(look.agent_id) == look.stamps:
                _agents.put(_slot(look, connection.alias), agent)
    now = clock.now()
    found = []
    for look in looks_now:
        agent = kept[look.agent_id] or read.get(look.agent_id)
        if agent is not None and agent.archived is archived:
            state = (*_slot(look, connection.alias), tuple(agent.over(now))) if all(look.stamps) else None
            found.append(Present(agent.standing(now), state))
    return found


def agents_with(kind: str, name: str) -> list[consumers.Agent]:
    """Give the agents that name this toolkit or tool, or that this sub-app embeds."""
    return agents.naming(kind, name)


def let_speak(voices: code.Voices) -> None:
    """Let these speak for toolkits in code from now on, whichever door asks; what is kept was said without them."""
    global _voices
    _voices = voices
    forget()


def watch(watcher: Callable[[values.Catalog], object]) -> None:
    """Let ``watcher`` see each new catalog that this process compiles; it must not take long, nor ask for one."""
    global _watcher
    _watcher = watcher


def forget() -> None:
    """Forget everything that is kept, as a process does that starts anew. For tests and measurements."""
    _catalogs.clear()
    _agents.clear()


def _compiled(number: int, stamp: str) -> values.Catalog | None:
    """Give the catalog of this state: kept, or compiled now by one thread for all; None if it is gone already."""
    if (kept := _catalogs.get((connection.alias, stamp))) is not None:
        return kept
    with _compiling:
        if (kept := _catalogs.get((connection.alias, stamp))) is not None:
            return kept
        read = rows.load(number, stamp, _voices)
        if _look_at_catalog() != (number, stamp):
            return None
        if stamp:
            _catalogs.put((connection.alias, stamp), read)
        if _watcher is not None:
            _watcher(read)
        return read


def _look(agent_key: str, session_key: str | None) -> looks.Look:
    with connection.cursor() as cursor:
        cursor.execute(looks.AT_AGENT, [session_key, agent_key])
        row = cursor.fetchone()
    if row is None:
        raise errors.NotFound("agent", agent_key, models.Agent.objects.values_list("key", flat=True))
    return looks.Look(*row)


def _look_at_agents(archived: bool) -> list[looks.Look]:
    catalog_number, catalog_stamp = _look_at_catalog()
    stamps = {
        agent_id: (number, stamp)
        for agent_id, number, stamp in models.AgentRevision.objects.values_list("agent_id", "number", "stamp")
    }
    ids = models.Agent.objects.filter(archived=archived).values_list("id", flat=True)
    return [
        looks.Look(agent_id, *stamps.get(agent_id, (0, "")), catalog_number, catalog_stamp, None, None)
        for agent_id in ids
    ]


def _look_at_catalog() -> tuple[int, str]:
    row = models.Revision.objects.values_list("catalog_number", "catalog_stamp").first()
    return row or (0, "")


def _slot(look: looks.Look, alias: str) -> tuple[str, int, str, str]:
    # With the catalog's stamp too: an agent names tools and toolkits by keys, which may change.
    return alias, look.agent_id, look.agent_stamp, look.catalog_stamp


def _found(
    look: looks.Look, stored: values.Catalog, agent: consumers.Agent, session_key: str | None
) -> Found:
    session = None
    if session_key is not None and look.state is None:
        session = conversations.Session(key=session_key)
    elif session_key is not None:
        session = sessions.value(session_key, look.loadout or "", look.state or "{}")
    now = clock.now() if agent.ends else None
    over = agent.over(now) if now is not None else {}
    return Found(
        catalog=stored,
        agent=agent.standing(now) if now is not None else agent,
        session=session,
        number=look.number,
        catalog_stamp=look.catalog_stamp,
        agent_stamp=look.agent_stamp,
        agent_id=look.agent_id,
        written=agent,
        over=over,
    )
