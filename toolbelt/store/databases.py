"""The database connection of the running thread: giving it back, and who may take one."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator

from django.db import connections
from django.db.utils import DEFAULT_DB_ALIAS

# How long a server may take to let a connection in, in seconds, before it counts as away.
CONNECT_SECONDS = 2

# Whether what runs here was asked for by an agent. The pool keeps a few connections for everyone else.
FOR_AN_AGENT: contextvars.ContextVar[bool] = contextvars.ContextVar("toolbelt_for_an_agent", default=False)


def release() -> None:
    """Return this thread's connection to the pool, unless a transaction is open on it.

    To be called before anything that may take long: a tool, an upstream server. The next query takes a connection
    again. SQLite's are kept, unless an error occurred on one: opening the file costs more than keeping it open, and
    nobody waits for it.
    """
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block and (connection.vendor != "sqlite" or connection.errors_occurred):
            connection.close()


@contextlib.contextmanager
def for_an_agent() -> Iterator[None]:
    """Take connections on behalf of an agent within the block: all but those that are kept for operators."""
    token = FOR_AN_AGENT.set(True)
    try:
        yield
    finally:
        FOR_AN_AGENT.reset(token)


def is_busy() -> bool:
    """Return whether every connection of the pool is taken, so that requests wait for one.

    Raises OperationalError if the database does not answer. Where there is a pool it is asked over a connection of its
    own: waiting for the pool would tell only that others wait, too.
    """
    connection = connections[DEFAULT_DB_ALIAS]
    pool = getattr(connection, "pool", None)
    if pool is None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        return False
    # PostgreSQL's driver, which an installation on SQLite need not have.
    import psycopg

    from toolbelt.store.looks import postgresql

    parameters = {**postgresql.parameters(connection), "connect_timeout": CONNECT_SECONDS}
    with connection.wrap_database_errors, psycopg.connect(**parameters, autocommit=True) as probe:
        probe.execute("SELECT 1")
    waiting: int = pool.get_stats().get("requests_waiting", 0)
    return waiting > 0
