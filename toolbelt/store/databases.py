"""The database connection of the current thread: releasing it, and reserving some for operators."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator

from django.db import connections
from django.db.utils import DEFAULT_DB_ALIAS

# How many seconds a server may take to accept a connection before it counts as away.
CONNECT_SECONDS = 2

# Whether the current code runs for an agent. The pool reserves a few connections for everything else.
FOR_AN_AGENT: contextvars.ContextVar[bool] = contextvars.ContextVar("toolbelt_for_an_agent", default=False)


def release() -> None:
    """Return this thread's connection to the pool, unless a transaction is open on it.

    To be called before anything that may take long: a tool, an upstream server. The next query takes a connection
    again. SQLite's are kept, unless an error occurred: reopening the file costs more, and no other thread waits for it.
    """
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block and (connection.vendor != "sqlite" or connection.errors_occurred):
            connection.close()


@contextlib.contextmanager
def for_an_agent() -> Iterator[None]:
    """Take connections on behalf of an agent within the block: all but those reserved for operators."""
    token = FOR_AN_AGENT.set(True)
    try:
        yield
    finally:
        FOR_AN_AGENT.reset(token)


def is_busy() -> bool:
    """Return whether every connection of the pool is in use, so that requests wait.

    Raise OperationalError if the database does not answer. With a pool, this uses a connection of its own: waiting for
    the pool would only show that others wait as well.
    """
    connection = connections[DEFAULT_DB_ALIAS]
    pool = getattr(connection, "pool", None)
    if pool is None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        return False
    # PostgreSQL's driver, which an installation on SQLite need not have.
    import psycopg

    from toolbelt.store.state_probe import postgresql

    parameters = {**postgresql.parameters(connection), "connect_timeout": CONNECT_SECONDS}
    with connection.wrap_database_errors, psycopg.connect(**parameters, autocommit=True) as probe:
        probe.execute("SELECT 1")
    waiting: int = pool.get_stats().get("requests_waiting", 0)
    return waiting > 0
