"""The status of an upstream server, from this process's connections and the database."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from toolbelt.core import connections, errors
from toolbelt.plugins.upstream import live_connection
from toolbelt.runtime import secrets
from toolbelt.runtime.upstream import process_connections, server_lists
from toolbelt.store import listings, plugins, snapshots


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The status of a server. ``state`` is that of this process's connection; ``summary`` covers all processes, and
    ``error`` explains it if it is not good.

    ``sharing`` is who shares a connection, empty if that depends on the server and it was not connected to yet.
    ``open_connections`` is how many this process has, of ``max_connections``; an unused one is kept for ``idle``
    seconds. ``answered`` is when the server last listed its tools for any process; ``problems`` are what could not be
    imported.
    """

    state: live_connection.State
    summary: listings.State
    is_being_asked: bool
    protocol: str = ""
    server: str = ""
    error: str = ""
    stderr: str = ""
    pause: float = 0.0
    asked: datetime | None = None
    answered: datetime | None = None
    tools: int = 0
    problems: tuple[errors.Problem, ...] = ()
    sharing: connections.Sharing = ""
    open_connections: int = 0
    max_connections: int = 0
    idle: int = 0


def read(name: str) -> Status:
    """Return the status of a server, without asking it. Raise errors.NotFound."""
    stored = snapshots.catalog()
    plugin = server_lists.find_server(stored, name)
    process_connections.apply_catalog(stored)
    states = [pooled.server.status() for pooled in process_connections.pool.of(name)]
    now = next(
        (status for status in states if status.state == "open"),
        states[0] if states else live_connection.Status(),
    )
    listing = listings.find(name)
    failure = plugins.errors().get(name, "") if plugin.status == "failed" else ""
    settings = connections.read(plugin.upstream)
    return Status(
        state=now.state,
        summary=listings.state(plugin, listing),
        is_being_asked=process_connections.is_being_listed(name),
        protocol=now.protocol or (listing.protocol if listing else ""),
        server=now.server or (listing.server if listing else ""),
        error=secrets.mask(now.error or (listing.error if listing else "") or failure),
        stderr=secrets.mask(now.stderr or (listing.stderr if listing else "")),
        pause=now.pause,
        asked=listing.asked if listing else None,
        answered=listing.answered if listing else None,
        tools=listing.tools if listing else 0,
        problems=listing.problems if listing else (),
        sharing=process_connections.sharing(plugin),
        open_connections=process_connections.open_connections(name),
        max_connections=settings.max_connections if settings is not None else 0,
        idle=settings.idle if settings is not None else 0,
    )
