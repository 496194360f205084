"""Has configuration been committed since, and whose? For whoever waits for changes on an event loop.

Two things make it up: something to wait for, which is the database's own (a number in the file of SQLite, a
notification of PostgreSQL), and one statement that says whose stamps moved, for all who wait. The number that each
write takes is held until its transaction ends, so what has a larger number was committed later, and only that is read.
What changes without a commit is said beforehand: when grants end.
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
from toolbelt.store import looks


class Unreachable(Exception):
    """The database cannot be read now."""


class Place(NamedTuple):
    """How far the catalog or an agent has come: the number of its last write, and the stamp of that state."""

    number: int
    stamp: str


NOWHERE = Place(0, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where everything stands: the number of the last write, the catalog, and each agent by its key.

    ``ends`` says when something of an agent is over (with its key), the first first; some of it may be by now.
    """

    number: int = 0
    catalog: Place = NOWHERE
    agents: Mapping[str, Place] = field(default_factory=dict)
    ends: Sequence[tuple[dt.datetime, str]] = ()

    def moved_since(self, earlier: State) -> frozenset[str]:
        """Name the agents whose own configuration is another one; those that came or went, too."""
        if self.agents is earlier.agents:
            return frozenset()
        return frozenset([key for key, _ in self.agents.items() ^ earlier.agents.items()])

    def revision(self, agent: str) -> int:
        """Give the number of the last write of the agent or the catalog."""
        own = self.agents.get(agent)
        return max(self.catalog.number, own.number) if own is not None else self.catalog.number


class Watch(Protocol):
    """Something that watches one database, from one event loop and without holding it up."""

    async def wait(self, seconds: float) -> None:
        """Return when something may have been committed, or when the time is over. Raises Unreachable."""
        ...

    async def read(self) -> State:
        """Read where everything stands. The reading begins after this was called. Raises Unreachable."""
        ...

    async def close(self) -> None:
        """Let go of the database."""
        ...


_lock = threading.Lock()
_here: weakref.WeakSet[Alarm] = weakref.WeakSet()


class Alarm:
    """Rings when this process commits, in whichever thread: then nobody has to find it out."""

    def __init__(self, ring: Callable[[], object]) -> None:
        self._ring = ring
        with _lock:
            _here.add(self)

    def ring(self) -> None:
        """Tell whoever waits; one who is gone by now is not told."""
        with contextlib.suppress(RuntimeError):
            self._ring()


def committed() -> None:
    """Say that this process committed configuration. To be called after each commit; it takes no time to speak of."""
    with _lock:
        alarms = list(_here)
    for alarm in alarms:
        alarm.ring()


def watch() -> Watch | None:
    """Give what watches the database of this installation; None for one that no other connection sees."""
    from toolbelt.store.commits import postgresql, sqlite

    connection = connections[DEFAULT_DB_ALIAS]
    match connection.vendor:
        case "sqlite":
            return sqlite.watch(connection)
        case "postgresql":
            return postgresql.watch(connection)
    return None


def statement(since: str) -> str:
    """Write the statement that reads what moved; ``since`` marks the number from which on."""
    return f"""
    SELECT r.number, r.catalog_number, r.catalog_stamp, (SELECT count(*) FROM {models.AgentRevision._meta.db_table}),
        a.key, v.number, v.stamp
    FROM {models.Revision._meta.db_table} r
    LEFT JOIN {models.AgentRevision._meta.db_table} v ON v.number > {since}
    LEFT JOIN {models.Agent._meta.db_table} a ON a.id = v.agent_id
    WHERE r.id = {models.Revision.THE_ONE}
    """  # noqa: S608 (names of tables)


# Since when to read all of it.
EVER = -1

ENDS = f"""
    SELECT g.ends, a.key
    FROM (
        SELECT agent_id, ends FROM {models.ToolkitSwitch._meta.db_table} WHERE ends IS NOT NULL
        UNION SELECT agent_id, ends FROM {models.ToolOverride._meta.db_table} WHERE ends IS NOT NULL
    ) g
    JOIN {models.Agent._meta.db_table} a ON a.id = g.agent_id
    ORDER BY g.ends, a.key
"""  # noqa: S608 (names of tables)


def ends(rows: Sequence[tuple[Any, ...]]) -> Sequence[tuple[dt.datetime, str]]:
    """Read the rows of :data:`ENDS`."""
    return tuple((at, key) for ends, key in rows if (at := looks.moment(ends)) is not None)


def whole(rows: Sequence[tuple[Any, ...]]) -> State:
    """Read all rows; none where nothing was ever written."""
    if not rows:
        return State()
    number, catalog_number, catalog_stamp, _ = rows[0][:4]
    agents = {key: Place(place, stamp) for *_, key, place, stamp in rows if key is not None}
    return State(number=number, catalog=Place(catalog_number, catalog_stamp), agents=agents)


def merged(known: State | None, rows: Sequence[tuple[Any, ...]]) -> State | None:
    """Put what moved since ``known`` into it; None where that does not add up, and all of it has to be read.

    So it is where an agent went away or has another key, and where the numbers went back, as after a flush.
    """
    if known is None or not rows or rows[0][0] < known.number:
        return None
    moved = whole(rows)
    agents = {**known.agents, **moved.agents} if moved.agents else known.agents
    if len(agents) != rows[0][3]:
        return None
    return dataclasses.replace(moved, agents=agents, ends=known.ends)
