"""Fair turns for writers of a SQLite file, so that none waits in vain under load.

SQLite itself retries less and less often, so new writers overtake those that have waited long. Here all retry equally
often, until the connection's own timeout.
"""

from __future__ import annotations

import random
import sqlite3
import time
from typing import Any

from django import db
from django.db.backends import signals

# The pause between two tries, in seconds: random, so that writers do not collide again.
MIN_PAUSE, MAX_PAUSE = 0.001, 0.01

_BEGIN = "BEGIN IMMEDIATE"


def connect() -> None:
    """Install the wrapper on each connection of this process."""
    signals.connection_created.connect(_install, dispatch_uid="toolbelt.turns")


def _install(connection: Any, **kwargs: Any) -> None:
    if connection.vendor == "sqlite" and wait_for_a_turn not in connection.execute_wrappers:
        connection.execute_wrappers.append(wait_for_a_turn)


def wait_for_a_turn(execute: Any, sql: Any, params: Any, many: bool, context: dict[str, Any]) -> Any:
    """Execute a statement; one that begins a transaction is retried until it gets the write lock."""
    if sql != _BEGIN:
        return execute(sql, params, many, context)
    connection = context["connection"]
    seconds = connection.settings_dict["OPTIONS"].get("timeout", 5.0)
    until = time.monotonic() + seconds
    connection.connection.execute("PRAGMA busy_timeout = 0")
    try:
        while True:
            try:
                return execute(sql, params, many, context)
            except db.OperationalError as error:
                if not _is_busy(error) or time.monotonic() > until:
                    raise
            time.sleep(random.uniform(MIN_PAUSE, MAX_PAUSE))  # noqa: S311 (not used for security)
    finally:
        connection.connection.execute(f"PRAGMA busy_timeout = {int(seconds * 1000)}")


def _is_busy(error: db.OperationalError) -> bool:
    code = getattr(error.__cause__, "sqlite_errorcode", 0)
    return bool(code & 0xFF == sqlite3.SQLITE_BUSY)
