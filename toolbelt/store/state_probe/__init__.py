"""The probe: one query for the token, the versions of agent and catalog, and the session of a request.

Everything else is cached in process, by the stamps that the probe reads. The statements are written by hand, because
every request runs one, and building them would cost more than answering.
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
from toolbelt.store import credentials

# How many parsed tokens are cached: by whole rows, so none can be outdated.
MAX_TOKENS = 1024


class ProbedState(NamedTuple):
    """The versions of an agent and of the catalog, and what is stored of the session.

    Stamps are empty if no trigger ever created one; ``loadout`` and ``state`` are None if nothing is stored.
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
        """Return both stamps: equal stamps, equal state."""
        return self.catalog_stamp, self.agent_stamp

    @property
    def number(self) -> int:
        """Return the revision of an answer from this state."""
        return max(self.catalog_number, self.agent_number)


class ProbeResult(NamedTuple):
    """A token and a state, read by one statement."""

    token: credentials.StoredToken
    state: ProbedState


class UnreachableError(Exception):
    """The database cannot be read this way now."""


class StateProbe(Protocol):
    """Reads the state outside of Django's connections, on an event loop and without blocking it."""

    async def read(self, prefix: str, agent: str, session: str | None) -> ProbeResult | None:
        """Return the token with this prefix, and the state of the agent and session; None if the token or the agent
        does not exist.

        The state is read after this call. Raise UnreachableError; callers then use Django's connection.
        """
        ...

    async def close(self) -> None:
        """Close the connection to the database."""
        ...


_STATE = """a.id, coalesce(v.number, 0), coalesce(v.stamp, ''), coalesce(r.catalog_number, 0),
        coalesce(r.catalog_stamp, ''), s.loadout, s.state"""
_JOINS = f"""LEFT JOIN {models.AgentRevision._meta.db_table} v ON v.agent_id = a.id
    LEFT JOIN {models.Revision._meta.db_table} r ON r.id = {models.Revision.THE_ONE}
    LEFT JOIN {models.AgentSession._meta.db_table} s ON s.agent_id = a.id AND s.key ="""
# With the parameters (session, agent), through Django's connection.
AT_AGENT = f"""
    SELECT {_STATE}
    FROM {models.Agent._meta.db_table} a
    {_JOINS} %s
    WHERE a.key = %s
"""  # noqa: S608 (names of tables)


@functools.cache
def with_token(parameters: str, prefix: str, agent: str, session: str, extra: str = "") -> str:
    """Return the statement that reads a token as well.

    ``parameters`` joins a table of parameters, or is empty; the others are columns of it, or placeholders.
    """
    user = auth.get_user_model()._meta
    name = cast("Field[Any, Any]", user.get_field(auth.get_user_model().USERNAME_FIELD))
    return f"""
    SELECT {extra} t.prefix, t.name, ta.key, u."{name.column}", t.scope, t.created, t.expires, t.revoked,
        t.last_used, t.digest, t.user_id,
        coalesce(u.is_active, TRUE) AND NOT coalesce(ta.archived, FALSE), {_STATE}
    FROM {parameters} {models.Agent._meta.db_table} a
    JOIN {models.ApiToken._meta.db_table} t ON t.prefix = {prefix}
    LEFT JOIN {models.Agent._meta.db_table} ta ON ta.id = t.agent_id
    LEFT JOIN "{user.db_table}" u ON u."{user.pk.column}" = t.user_id
    {_JOINS} {session}
    WHERE a.key = {agent}
"""  # noqa: S608 (names of tables)


def from_row(row: tuple[Any, ...]) -> ProbeResult:
    """Return the result of a row of :func:`with_token`."""
    return ProbeResult(_token(*row[:12]), ProbedState(*row[12:]))


def open_probe() -> StateProbe | None:
    """Return a probe of this installation's database; None if only Django can read it."""
    from toolbelt.store.state_probe import postgresql, sqlite

    connection = connections[DEFAULT_DB_ALIAS]
    match connection.vendor:
        case "sqlite":
            return sqlite.open_probe(connection)
        case "postgresql":
            return postgresql.open_probe(connection)
    return None


@functools.lru_cache(MAX_TOKENS)
def _token(*row: Any) -> credentials.StoredToken:
    prefix, name, agent, user, scope, *times, digest, user_id, is_active = row
    return credentials.from_row(
        (prefix, name, agent, user, scope, *map(to_datetime, times), digest, user_id, is_active)
    )


def to_datetime(value: str | dt.datetime | None) -> dt.datetime | None:
    """Return a time as Django would: SQLite stores text, in UTC."""
    if value is None or isinstance(value, dt.datetime):
        return value
    parsed = dateparse.parse_datetime(value)
    return parsed.replace(tzinfo=dt.UTC) if parsed is not None and parsed.tzinfo is None else parsed
