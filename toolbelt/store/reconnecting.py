"""Retrying a read once when the connection to PostgreSQL was lost.

Only reads outside of transactions are retried: the statements of a transaction belong together, and a write may have
been executed although its answer was lost.
"""

from __future__ import annotations

from typing import Any

from django import db
from django.db.backends import signals


def connect() -> None:
    """Install the wrapper on each connection of this process."""
    signals.connection_created.connect(_install, dispatch_uid="toolbelt.reconnecting")


def _install(connection: Any, **kwargs: Any) -> None:
    if connection.vendor == "postgresql" and run_reads_again not in connection.execute_wrappers:
        connection.execute_wrappers.append(run_reads_again)


def run_reads_again(execute: Any, sql: Any, params: Any, many: bool, context: dict[str, Any]) -> Any:
    """Execute a statement, and retry a read over a new connection if the connection was lost (an execute wrapper)."""
    connection, cursor = context["connection"], context["cursor"]
    try:
        return execute(sql, params, many, context)
    except (db.OperationalError, db.InterfaceError):
        if many or not _is_read(sql) or connection.in_atomic_block or not _is_cut(connection):
            raise
        if getattr(cursor.cursor, "name", None):
            # A server-side cursor has lost its position in the rows.
            raise
        connection.close()
        connection.connect()
        cursor.cursor = connection.create_cursor()
        return execute(sql, params, many, context)


def _is_read(sql: Any) -> bool:
    return isinstance(sql, str) and sql.lstrip()[:6].upper() == "SELECT"


def _is_cut(connection: Any) -> bool:
    return connection.connection is not None and connection.connection.closed
