"""Everything that one resolution needs, in a fixed number of queries: one, when nothing changed.

Catalog and agents are kept in process under the stamps of the state that they were read from, which the database
makes; so a kept value is never wrong, in whichever transaction it was read, only no longer asked for. What is read
anew is kept only if the stamps were the same before and after reading it.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import NamedTuple

from django.db import connection, transaction

from toolbelt import models
from toolbelt.core import agents as consumers
from toolbelt.core import catalog as values
from toolbelt.core import code, errors
from toolbelt.core import sessions as conversations
from toolbelt.store import agents, caches, revisions, sessions
from toolbelt.store import catalog as rows

# How often to read again what changed while it was being read, before asking the writers to wait.
TRIES = 3
MOST_AGENTS = 512
# The current one, and the one before it for whoever is still at work with it.
MOST_CATALOGS = 2

_catalogs: caches.Recent[tuple[str, str], values.Catalog] = caches.Recent(MOST_CATALOGS)
_agents: caches.Recent[tuple[str, int, str, str], consumers.Agent] = caches.Recent(MOST_AGENTS)
_compiling = threading.Lock()
_voices: code.Voices = {}

# Written by hand, because every question asks it, and putting it together would cost more than answering it.
_LOOK = f"""
    SELECT a.id, coalesce(v.number, 0), coalesce(v.stamp, ''), coalesce(r.catalog_number, 0),
        coalesce(r.catalog_stamp, ''), s.loadout, s.state
    FROM {models.Agent._meta.db_table} a
    LEFT JOIN {models.AgentRevision._meta.db_table} v ON v.agent_id = a.id
    LEFT JOIN {models.Revision._meta.db_table} r ON r.id = 1
    LEFT JOIN {models.AgentSession._meta.db_table} s ON s.agent_id = a.id AND s.key = %s
    WHERE a.key = %s
"""  # noqa: S608 (names of tables)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a question is answered from. ``session`` is None where none was asked for."""

    catalog: values.Catalog
    agent: consumers.Agent
    session: conversations.Session | None
    number: int
    catalog_stamp: str
    agent_stamp: str
    agent_id: int


class _Look(NamedTuple):
    """What one look at the database says; empty stamps where no trigger ever made one."""

    agent_id: int
    agent_number: int
    agent_stamp: str
    catalog_number: int
    catalog_stamp: str
    loadout: str | None
    state: str | None

    @property
    def stamps(self) -> tuple[str, str]:
        return self.catalog_stamp, self.agent_stamp


def find(agent_key: str, session_key: str | None) -> Found:
    """Find all that a question of this agent, in this session, is answered from. Raises errors.NotFound."""
    look = _look(agent_key, session_key)
    for _ in range(TRIES):
        stored = _compiled(look.catalog_number, look.catalog_stamp)
        if stored is not None and (agent := _agents.get(_slot(look))) is not None:
            return _found(look, stored, agent, session_key)
        read = agents.load(look.agent_id)
        again = _look(agent_key, session_key)
        if stored is not None and read is not None and again.stamps == look.stamps:
            if all(look.stamps):
                _agents.put(_slot(look), read)
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


def catalog() -> values.Catalog:
    """Give the catalog as it is now."""
    for _ in range(TRIES):
        stored = _compiled(*_look_at_catalog())
        if stored is not None:
            return stored
    with transaction.atomic():
        revisions.lock()
        return rows.load(*_look_at_catalog(), _voices)


def agents_with(kind: str, name: str) -> list[consumers.Agent]:
    """Give the agents that name this toolkit or tool, or that this sub-app embeds."""
    return agents.naming(kind, name)


def let_speak(voices: code.Voices) -> None:
    """Let these speak for toolkits in code from now on, whichever door asks; what is kept was said without them."""
    global _voices
    _voices = voices
    forget()


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
        return read


def _look(agent_key: str, session_key: str | None) -> _Look:
    with connection.cursor() as cursor:
        cursor.execute(_LOOK, [session_key, agent_key])
        row = cursor.fetchone()
    if row is None:
        raise errors.NotFound("agent", agent_key, models.Agent.objects.values_list("key", flat=True))
    return _Look(*row)


def _look_at_catalog() -> tuple[int, str]:
    row = models.Revision.objects.values_list("catalog_number", "catalog_stamp").first()
    return row or (0, "")


def _slot(look: _Look) -> tuple[str, int, str, str]:
    # With the catalog's stamp too: an agent names tools and toolkits by keys, which may change.
    return connection.alias, look.agent_id, look.agent_stamp, look.catalog_stamp


def _found(look: _Look, stored: values.Catalog, agent: consumers.Agent, session_key: str | None) -> Found:
    session = None
    if session_key is not None:
        session = sessions.value(session_key, look.loadout or "", look.state or "{}")
    return Found(
        catalog=stored,
        agent=agent,
        session=session,
        number=max(look.catalog_number, look.agent_number),
        catalog_stamp=look.catalog_stamp,
        agent_stamp=look.agent_stamp,
        agent_id=look.agent_id,
    )
