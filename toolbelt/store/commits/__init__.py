"""Watching the database for committed changes of configuration, on an event loop.

A watch has two parts: something to wait for, which depends on the database (a number in SQLite's file, a notification
of PostgreSQL), and one statement that reads whose stamps moved, for all who wait. The number that each write takes is
locked until its transaction ends, so a larger number was committed later, and only larger ones are read. What changes
without a commit is known in advance: when grants expire.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from django.db import DEFAULT_DB_ALIAS, connections

from toolbelt import models
from toolbelt.store import state_probe


class UnreachableError(Exception):
    """The database cannot be read now."""


class Version(NamedTuple):
    """The version of the catalog or of an agent: the number of its last write, and the stamp of that state."""

    number: int
    stamp: str


NO_VERSION = Version(0, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The state of the configuration: the number of the last write, the version of the catalog, and of each agent by
    key.

    ``ends`` are the expiries of agents (with their key), and the ends of blocks (with :data:`CATALOG`), the first
    first; some may be in the past.
    """

    number: int = 0
    catalog: Version = NO_VERSION
    agents: Mapping[str, Version] = field(default_factory=dict)
    ends: Sequence[tuple[dt.datetime, str]] = ()

    def moved_since(self, earlier: State) -> frozenset[str]:
        """Return the agents whose own configuration differs, including those that were added or removed."""
        if self.agents is earlier.agents:
            return frozenset()
        return frozenset([key for key, _ in self.agents.items() ^ earlier.agents.items()])

    def revision(self, agent: str) -> int:
        """Return the number of the last write of the agent or the catalog."""
        agent_version = self.agents.get(agent)
        return (
            max(self.catalog.number, agent_version.number)
            if agent_version is not None
            else self.catalog.number
        )


class Watch(Protocol):
    """Watches one database from one event loop, without blocking it."""

    async def wait(self, seconds: float) -> None:
        """Return when something may have been committed, or after this time; raise UnreachableError."""
        ...

    async def read(self) -> State:
        """Return the state, read after this call; raise UnreachableError."""
        ...

    async def close(self) -> None:
        """Close the connection to the database."""
        ...


_lock = threading.Lock()
_notifiers: weakref.WeakSet[CommitNotifier] = weakref.WeakSet()


class CommitNotifier:
    """Calls a function whenever this process commits, in any thread, so that nothing has to poll for it."""

    def __init__(self, notify: Callable[[], object]) -> None:
        self._notify = notify
        with _lock:
            _notifiers.add(self)

    def notify(self) -> None:
        """Call the function, unless its event loop is closed."""
        with contextlib.suppress(RuntimeError):
            self._notify()


def committed() -> None:
    """Notify watches that this process committed configuration. To be called after each commit; it is fast."""
    with _lock:
        notifiers = list(_notifiers)
    for notifier in notifiers:
        notifier.notify()


def watch() -> Watch | None:
    """Return a watch of this installation's database; None for one that no other connection sees."""
    from toolbelt.store.commits import postgresql, sqlite

    connection = connections[DEFAULT_DB_ALIAS]
    match connection.vendor:
        case "sqlite":
            return sqlite.watch(connection)
        case "postgresql":
            return postgresql.watch(connection)
    return None


def statement(since: str) -> str:
    """Return the statement that reads what moved; ``since`` is the placeholder of the number to start from."""
    return f"""
    SELECT r.number, r.catalog_number, r.catalog_stamp, (SELECT count(*) FROM {models.AgentRevision._meta.db_table}),
        a.key, v.number, v.stamp
    FROM {models.Revision._meta.db_table} r
    LEFT JOIN {models.AgentRevision._meta.db_table} v ON v.number > {since}
    LEFT JOIN {models.Agent._meta.db_table} a ON a.id = v.agent_id
    WHERE r.id = {models.Revision.THE_ONE}
    """  # noqa: S608 (names of tables)


# The number from which everything is read.
FROM_START = -1

# The key beside the end of a block, which may concern any agent. No agent has it.
CATALOG = ""

ENDS = f"""
    SELECT g.ends, a.key
    FROM (
        SELECT agent_id, ends FROM {models.ToolkitSwitch._meta.db_table} WHERE ends IS NOT NULL
        UNION SELECT agent_id, ends FROM {models.ToolOverride._meta.db_table} WHERE ends IS NOT NULL
    ) g
    JOIN {models.Agent._meta.db_table} a ON a.id = g.agent_id
    UNION SELECT block_ends, '' FROM {models.Plugin._meta.db_table} WHERE block_ends IS NOT NULL
    UNION SELECT block_ends, '' FROM {models.Toolkit._meta.db_table} WHERE block_ends IS NOT NULL
    UNION SELECT block_ends, '' FROM {models.Tool._meta.db_table} WHERE block_ends IS NOT NULL
    ORDER BY 1, 2
"""  # noqa: S608 (names of tables)


def ends(rows: Sequence[tuple[Any, ...]]) -> Sequence[tuple[dt.datetime, str]]:
    """Return the expiries from the rows of :data:`ENDS`."""
    return tuple((at, key) for ends, key in rows if (at := state_probe.to_datetime(ends)) is not None)


def full_state(rows: Sequence[tuple[Any, ...]]) -> State:
    """Return the state from all rows; an empty one if nothing was ever written."""
    if not rows:
        return State()
    number, catalog_number, catalog_stamp, _ = rows[0][:4]
    agents = {key: Version(agent_number, stamp) for *_, key, agent_number, stamp in rows if key is not None}
    return State(number=number, catalog=Version(catalog_number, catalog_stamp), agents=agents)


def merged(previous: State | None, rows: Sequence[tuple[Any, ...]]) -> State | None:
    """Return ``previous`` updated by the rows that moved since; None if everything must be read again.

    That is so if an agent was removed or has another key, or if the numbers decreased, as after a flush.
    """
    if previous is None or not rows or rows[0][0] < previous.number:
        return None
    moved = full_state(rows)
    agents = {**previous.agents, **moved.agents} if moved.agents else previous.agents
    if len(agents) != rows[0][3]:
        return None
    return dataclasses.replace(moved, agents=agents, ends=previous.ends)
