"""Detection of a SQLite file that was replaced under a running server.

Some of the server's connections would keep the file that they opened, and the log beside a file (``-wal``) belongs to
one file only. The server must therefore be restarted, and logs that.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

import structlog
from django.db import DEFAULT_DB_ALIAS, connections

_log = structlog.get_logger(__name__)
_lock = threading.Lock()
_opened: dict[Path, tuple[int, int]] = {}
_reported: set[Path] = set()


def open_existing_only() -> None:
    """Prevent this process from creating an empty database if the file is missing, and remember the file's identity.

    For servers, when they start. Does nothing for a database in memory or on a server, or if there is no file yet.
    """
    connection = connections[DEFAULT_DB_ALIAS]
    path = _path()
    if path is not None and path.exists():
        connection.settings_dict["OPTIONS"]["database"] = f"{path.as_uri()}?mode=rw"
        with _lock:
            _opened.setdefault(path, _identity(path))


def was_replaced() -> bool:
    """Return whether the file is another one than when this server started; log it as an error, once."""
    path = _path()
    opened = _opened.get(path) if path is not None else None
    if path is None or opened is None:
        return False
    try:
        if _identity(path) == opened:
            return False
    except OSError:
        pass  # it was removed
    with _lock:
        is_new = path not in _reported
        _reported.add(path)
    if is_new:
        _log.error("database file was exchanged under this server: restart it", file=path.name)
    return True


def forget() -> None:
    """Forget the file that this process started with. For tests."""
    for path in list(_opened):
        connections[DEFAULT_DB_ALIAS].settings_dict["OPTIONS"].pop("database", None)
        del _opened[path]
    _reported.clear()


def _path() -> Path | None:
    connection = connections[DEFAULT_DB_ALIAS]
    if connection.vendor != "sqlite" or connection.is_in_memory_db():  # type: ignore[attr-defined]
        return None
    return Path(connection.settings_dict["NAME"]).resolve()


def _identity(path: Path) -> tuple[int, int]:
    stat = os.stat(path)
    return stat.st_dev, stat.st_ino
