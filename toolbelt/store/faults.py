"""Classification of database errors: unavailable, busy, read-only, full or damaged, or a defect of Toolbelt.

:func:`classify` is the only place that knows the errors of SQLite, PostgreSQL and the connection pool. Every interface
answers with its result: an :class:`errors.Unavailable`.
"""

from __future__ import annotations

import shutil
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from django import db
from django.db import DEFAULT_DB_ALIAS, connections

from toolbelt.core import errors

if TYPE_CHECKING:
    import psycopg

# With less free space than this, the disk counts as full if SQLite reports only that reading or writing failed.
MIN_FREE_BYTES = 64 * 1024

_Fault = tuple[errors.UnavailableCode, str, int]

_AWAY: _Fault = (
    "database-unavailable",
    "The database cannot be reached now. Try again in a few seconds.",
    5,
)
_NO_TABLES: _Fault = (
    "database-unavailable",
    "The database lacks tables of Toolbelt: it is another database, or migrations have not been applied.",
    30,
)
_NO_FILE: _Fault = (
    "database-unavailable",
    "The database file cannot be opened: it is missing, or the server may not read it.",
    30,
)
_UNREADABLE: _Fault = (
    "database-unavailable",
    "The database file cannot be read or written: its disk answers with errors.",
    30,
)
_DAMAGED: _Fault = (
    "database-unavailable",
    "The database file is damaged. An operator has to restore it from a backup.",
    60,
)
_BUSY: _Fault = (
    "database-busy",
    "The database is busy: another write holds it. Try again in a moment.",
    1,
)
_NO_CONNECTION: _Fault = (
    "database-busy",
    "The database is busy: all connections to it are in use. Try again in a moment.",
    2,
)
_READ_ONLY: _Fault = (
    "database-read-only",
    "The database is read-only now, so nothing can be changed.",
    30,
)
_FULL: _Fault = (
    "storage-full",
    "The disk of the database is full, so nothing can be saved. An operator has to free some space.",
    60,
)

# By SQLite's primary result code, which is the low byte of an extended one.
_OF_SQLITE: dict[int, _Fault] = {
    sqlite3.SQLITE_BUSY: _BUSY,
    sqlite3.SQLITE_LOCKED: _BUSY,
    sqlite3.SQLITE_PROTOCOL: _BUSY,
    sqlite3.SQLITE_READONLY: _READ_ONLY,
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_IOERR: _UNREADABLE,
    sqlite3.SQLITE_CANTOPEN: _NO_FILE,
    sqlite3.SQLITE_PERM: _NO_FILE,
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: _DAMAGED,
}
# By SQLSTATE; the longest matching prefix applies.
_OF_POSTGRESQL: dict[str, _Fault] = {
    "08": _AWAY,  # connection exceptions
    "25006": _READ_ONLY,  # in a transaction that is read-only, as on a hot standby
    "28": _AWAY,  # the server does not let Toolbelt in
    "3D000": _AWAY,  # the server has no such database
    "40001": _BUSY,  # serialization failure
    "40P01": _BUSY,  # deadlock
    "42P01": _NO_TABLES,
    "53100": _FULL,
    "53300": _NO_CONNECTION,
    "53": _AWAY,  # other insufficient resources
    "55P03": _BUSY,  # lock not available
    "57014": _BUSY,  # cancelled, by a timeout of the server's
    "57P": _AWAY,  # shut down, crashed, starting
    "58": _AWAY,  # errors of the server's operating system
    "XX001": _DAMAGED,
    "XX002": _DAMAGED,
}
# Errors of refused connections have no SQLSTATE.
_TOO_MANY_CLIENTS = ("too many clients", "too many connections", "remaining connection slots")


def classify(error: BaseException | None) -> errors.Unavailable | None:
    """Return the answer for a database error, or an error that was raised from one; None for other errors."""
    while error is not None:
        if isinstance(error, errors.Unavailable):
            return error
        fault = None
        if isinstance(error, sqlite3.Error):
            fault = _of_sqlite(error)
        elif "psycopg" in sys.modules:  # else, no error is its
            fault = _of_postgresql(error)
        if fault is not None:
            code, sentence, seconds = fault
            return errors.Unavailable(code, sentence, seconds)
        error = error.__cause__
    return None


@contextmanager
def raised_as_unavailable() -> Iterator[None]:
    """Raise errors.Unavailable instead of the database's own error within the block."""
    try:
        yield
    except db.Error as error:
        if (unavailable := classify(error)) is None:
            raise
        raise unavailable from error


def _of_sqlite(error: sqlite3.Error) -> _Fault | None:
    # Errors that Python's module raises itself have no code.
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return None
    if code == sqlite3.SQLITE_ERROR and "no such table" in str(error):
        return _NO_TABLES
    fault = _OF_SQLITE.get(code & 0xFF)
    return _FULL if fault is _UNREADABLE and _is_disk_full() else fault


def _is_disk_full() -> bool:
    """Return whether the disk of the SQLite file is full: some failed writes do not say so."""
    name = connections[DEFAULT_DB_ALIAS].settings_dict["NAME"]
    try:
        return shutil.disk_usage(Path(name).parent).free < MIN_FREE_BYTES
    except OSError:
        return False


def _of_postgresql(error: BaseException) -> _Fault | None:
    import psycopg
    import psycopg_pool

    if not isinstance(error, psycopg.Error):
        return None
    if isinstance(error, psycopg_pool.PoolTimeout):
        # The pool does not report why it has no connection: none could be opened, or all are in use.
        refused = _last_refusal()
        return _NO_CONNECTION if refused is None else _of_postgresql(refused)
    if error.sqlstate is not None:
        for length in (5, 3, 2):
            if (fault := _OF_POSTGRESQL.get(error.sqlstate[:length])) is not None:
                return fault
        return None
    if any(words in str(error) for words in _TOO_MANY_CLIENTS):
        return _NO_CONNECTION
    # Without SQLSTATE, the server did not answer: the connection failed or was lost.
    return _AWAY if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) else None


def _last_refusal() -> psycopg.Error | None:
    """Return the error of the pool's last attempt to connect; None if it succeeded."""
    pool = getattr(connections[DEFAULT_DB_ALIAS], "pool", None)
    return getattr(getattr(pool, "connection_class", None), "refusal", None)
