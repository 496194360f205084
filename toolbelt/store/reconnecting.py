"""Run a read again, once, where the connection to PostgreSQL was cut under it: its caller does not notice.

Only a read outside of a transaction: what is in a transaction belongs together, and a write may have been done although
its answer was lost.
"""

from __future__ import annotations

from typing import Any

from django import db
from django.db.backends import signals


def connect() -> None:
    """Let each connection of this process do so."""
    signals.connection_created.connect(_install, dispatch_uid="toolbelt.reconnecting")


def _install(connection: Any, **about: Any) -> None:
    if connection.vendor == "postgresql" and run_reads_again not in connection.execute_wrappers:
        connection.execute_wrappers.append(run_reads_again)


def run_reads_again(execute: Any, sql: Any, params: Any, many: bool, context: dict[str, Any]) -> Any:
    """Execute a statement; a read that was cut off a second time, over a new connection (an execute wrapper)."""
    connection, cursor = context["connection"], context["cursor"]
    try:
        return execute(sql, params, many, context)
    except (db.OperationalError, db.InterfaceError):
        if many or not _is_read(sql) or connection.in_atomic_block or not _is_cut(connection):
            raise
        if getattr(cursor.cursor, "name", None):
            # A cursor on the server was lost with its place in the rows.
            raise
        connection.close()
        connection.connect()
        cursor.cursor = connection.create_cursor()
        return execute(sql, params, many, context)


def _is_read(sql: Any) -> bool:
    return isinstance(sql, str) and sql.lstrip()[:6].upper() == "SELECT"


def _is_cut(connection: Any) -> bool:
    return connection.connection is not None and connection.connection.closed
