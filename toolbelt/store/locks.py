"""Who does this alone? A lock that every process of the installation sees, held without a transaction."""

from __future__ import annotations

import fcntl
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.db import connection


@contextmanager
def alone(name: str) -> Iterator[bool]:
    """Hold the lock of this name, and say whether it could be had; nobody waits for it.

    PostgreSQL holds it for all machines. SQLite is one machine's, so a file beside the database does: its own lock
    would keep every other writer out for as long.
    """
    if connection.vendor == "postgresql":
        number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], signed=True)
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_lock(%s)", [number])
            had = bool(cursor.fetchone()[0])
            try:
                yield had
            finally:
                if had:
                    cursor.execute("SELECT pg_advisory_unlock(%s)", [number])
        return
    beside = Path(str(connection.settings_dict["NAME"]) + f".{name}.lock")
    with beside.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
