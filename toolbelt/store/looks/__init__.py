"""What does one look at the database say of a question: whose token, which state of agent and catalog, which session?

Everything else that an answer needs is kept in process, under the stamps that the look reads. The statements are
written by hand, because every question asks one of them, and putting them together would cost more than answering.
"""

from __future__ import annotations

import datetime as dt
import functools
from typing import Any, NamedTuple, Protocol, cast

from django.contrib import auth
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.models import Field
from django.utils import dateparse

from toolbelt import models
from toolbelt.store import access

# How many tokens to keep read: rows as they were, so none of them can be out of date.
MOST_TOKENS = 1024


class Look(NamedTuple):
    """Where an agent and the catalog stand, and what is kept of the session.

    Empty stamps where no trigger ever made one; ``loadout`` and ``state`` are None where nothing is kept.
    """

    agent_id: int
    agent_number: int
    agent_stamp: str
    catalog_number: int
    catalog_stamp: str
    loadout: str | None
    state: str | None

    @property
    def stamps(self) -> tuple[str, str]:
        """Give the stamps of both: equal stamps, equal state."""
        return self.catalog_stamp, self.agent_stamp

    @property
    def number(self) -> int:
        """Give the revision of an answer from here."""
        return max(self.catalog_number, self.agent_number)


class Seen(NamedTuple):
    """A token and a look, read by one statement."""

    token: access.Kept
    look: Look


class Unreachable(Exception):
    """The database cannot be read this way now."""


class Eyes(Protocol):
    """Something that looks beside Django's own connections, from an event loop and without holding it up."""

    async def look(self, prefix: str, agent: str, session: str | None) -> Seen | None:
        """Look for the token that begins so, at the agent and at the session; None where token or agent is not there.

        The reading begins after this was called. Raises Unreachable; whoever asks then asks Django.
        """
        ...

    async def close(self) -> None:
        """Let go of the database."""
        ...


_STATE = """a.id, coalesce(v.number, 0), coalesce(v.stamp, ''), coalesce(r.catalog_number, 0),
        coalesce(r.catalog_stamp, ''), s.loadout, s.state"""
_BESIDE = f"""LEFT JOIN {models.AgentRevision._meta.db_table} v ON v.agent_id = a.id
    LEFT JOIN {models.Revision._meta.db_table} r ON r.id = {models.Revision.THE_ONE}
    LEFT JOIN {models.AgentSession._meta.db_table} s ON s.agent_id = a.id AND s.key ="""
# Asked for (session, agent), through Django's connection.
AT_AGENT = f"""
    SELECT {_STATE}
    FROM {models.Agent._meta.db_table} a
    {_BESIDE} %s
    WHERE a.key = %s
"""  # noqa: S608 (names of tables)


@functools.cache
def with_token(asked: str, prefix: str, agent: str, session: str, extra: str = "") -> str:
    """Write the statement that reads a token, too.

    ``asked`` joins a table of what is looked for, or is nothing; the others say where in it, or by which mark.
    """
    user = auth.get_user_model()._meta
    name = cast("Field[Any, Any]", user.get_field(auth.get_user_model().USERNAME_FIELD))
    return f"""
    SELECT {extra} t.prefix, t.name, ta.key, u."{name.column}", t.scope, t.created, t.expires, t.revoked,
        t.last_used, t.digest, t.user_id, coalesce(u.is_active, NOT ta.archived), {_STATE}
    FROM {asked} {models.Agent._meta.db_table} a
    JOIN {models.ApiToken._meta.db_table} t ON t.prefix = {prefix}
    LEFT JOIN {models.Agent._meta.db_table} ta ON ta.id = t.agent_id
    LEFT JOIN "{user.db_table}" u ON u."{user.pk.column}" = t.user_id
    {_BESIDE} {session}
    WHERE a.key = {agent}
"""  # noqa: S608 (names of tables)


def seen(row: tuple[Any, ...]) -> Seen:
    """Read a row of :func:`with_token`."""
    return Seen(_token(*row[:12]), Look(*row[12:]))


def eyes() -> Eyes | None:
    """Give what looks at the database of this installation; None where only Django can read it."""
    from toolbelt.store.looks import postgresql, sqlite

    connection = connections[DEFAULT_DB_ALIAS]
    match connection.vendor:
        case "sqlite":
            return sqlite.eyes(connection)
        case "postgresql":
            return postgresql.eyes(connection)
    return None


@functools.lru_cache(MOST_TOKENS)
def _token(*row: Any) -> access.Kept:
    prefix, name, agent, user, scope, *moments, digest, user_id, is_active = row
    return access.kept((prefix, name, agent, user, scope, *map(moment, moments), digest, user_id, is_active))


def moment(value: str | dt.datetime | None) -> dt.datetime | None:
    """Read a time as Django does: SQLite keeps a text, in UTC."""
    if value is None or isinstance(value, dt.datetime):
        return value
    found = dateparse.parse_datetime(value)
    return found.replace(tzinfo=dt.UTC) if found is not None and found.tzinfo is None else found
