"""A lock that all processes of the installation share, held without a transaction."""

from __future__ import annotations

import fcntl
import hashlib
import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from django.db import connection

RETRY_SECONDS = 0.2


@contextmanager
def try_lock(name: str) -> Iterator[bool]:
    """Try to hold the lock with this name within the block, without waiting; yield whether it was acquired.

    PostgreSQL holds it for all machines. SQLite runs on one machine, so a file beside the database is locked: SQLite's
    own lock would block every other writer.
    """
    if connection.vendor == "postgresql":
        number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], signed=True)
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_lock(%s)", [number])
            is_held = bool(cursor.fetchone()[0])
            try:
                yield is_held
            finally:
                if is_held:
                    cursor.execute("SELECT pg_advisory_unlock(%s)", [number])
        return
    lock_path = Path(str(connection.settings_dict["NAME"]) + f".{name}.lock")
    with lock_path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


@contextmanager
def wait_for_lock(name: str, on_wait: Callable[[], object]) -> Iterator[None]:
    """Hold the lock with this name within the block. Call ``on_wait`` once if another process holds it."""
    for attempt in itertools.count():
        with try_lock(name) as is_held:
            if is_held:
                yield
                return
        if not attempt:
            on_wait()
        time.sleep(RETRY_SECONDS)
