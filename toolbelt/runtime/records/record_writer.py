"""The thread that writes records of calls, and counts, in batches after the calls have been answered.

Servers start it. Records are written within :data:`DELAY` seconds, and all of them when the server ends. A process
that is killed loses only the records of that time.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import structlog
from django.db import InterfaceError, OperationalError, connections

from toolbelt.store import call_records, context_use, conversations, learned_words

# A call, by the names of its columns; words that the search learns; the tokens that were sent to an agent; or what a
# conversation was told.
Record = Mapping[str, Any] | learned_words.Lesson | context_use.Use | conversations.Told

DELAY = 0.05
MAX_WAITING, MAX_BATCH_SIZE = 10_000, 500
# The number of records that may be queued between a call of has_room and its use: threads end calls, too.
MARGIN = 100
# The pause after the database could not be written to, in seconds, and the number of attempts at the end.
RETRY_SECONDS, FINAL_ATTEMPTS = 1.0, 3

_log = structlog.get_logger(__name__)


class Writer:
    """A thread that writes the records of one process."""

    def __init__(self) -> None:
        # None is the end; an event is set once all records before it are written.
        self._waiting: queue.SimpleQueue[Record | threading.Event | None] = queue.SimpleQueue()
        # Set while a caller waits until its records are written.
        self._is_awaited = threading.Event()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._is_ending = False

    def start(self) -> None:
        """Start the thread, unless it runs."""
        with self._starting:
            if self._thread is None:
                self._is_ending = False
                self._is_awaited.clear()
                self._thread = threading.Thread(target=self._run, name="toolbelt-records", daemon=True)
                self._thread.start()

    def enqueue(self, record: Record) -> bool:
        """Queue a record; return False if the caller has to write it."""
        if self._thread is None or self._is_ending or self._waiting.qsize() >= MAX_WAITING:
            return False
        self._waiting.put(record)
        return True

    def has_room(self) -> bool:
        """Return whether :meth:`enqueue` will queue the record of a call that ends immediately."""
        return self._thread is not None and self._waiting.qsize() < MAX_WAITING - MARGIN

    def flush(self, seconds: float) -> bool:
        """Write all queued records now, and wait for at most this many seconds; return whether they are written.

        False also if the thread does not run.
        """
        is_written = threading.Event()
        with self._starting:
            if self._thread is None:
                return False
            self._is_awaited.set()
            self._waiting.put(is_written)
        return is_written.wait(seconds)

    def stop(self) -> None:
        """Write all queued records and accept no more."""
        with self._starting:
            thread, self._thread = self._thread, None
            if thread is None:
                return
            self._is_ending = True
            self._is_awaited.set()
            self._waiting.put(None)
        thread.join()

    def _run(self) -> None:
        records: list[Record] = []
        awaited: list[threading.Event] = []
        try:
            while not self._is_ending or not self._waiting.empty() or records:
                self._gather(records, awaited)
                if self._write(records):
                    records = []
                    while awaited:
                        awaited.pop().set()
        finally:
            connections.close_all()

    def _gather(self, records: list[Record], awaited: list[threading.Event]) -> None:
        """Add queued records, after waiting for more; wait less if there are records left to write."""
        with contextlib.suppress(queue.Empty):
            item = self._waiting.get(timeout=RETRY_SECONDS if records else None)
            if item is not None and not isinstance(item, threading.Event):
                self._is_awaited.wait(DELAY)
            while item is not None:
                if isinstance(item, threading.Event):
                    self._is_awaited.clear()
                    awaited.append(item)
                else:
                    records.append(item)
                if len(records) >= MAX_BATCH_SIZE:
                    break
                item = self._waiting.get_nowait()

    def _write(self, records: list[Record]) -> bool:
        """Write the records; return False if they must be tried again."""
        for tries_left in reversed(range(FINAL_ATTEMPTS if self._is_ending else 1)):
            try:
                _write_all(records)
            except (OperationalError, InterfaceError) as error:
                connections.close_all()
                if self._is_ending and not tries_left:
                    _log.error("calls not recorded", calls=len(records), error=str(error))
                    return True
                _log.warning("calls not recorded yet", calls=len(records), error=str(error))
                if self._is_ending:
                    time.sleep(RETRY_SECONDS)
            except Exception:
                # One of the records cannot be stored.
                _write_singly(records)
                return True
            else:
                return True
        return False


def _write_all(records: list[Record]) -> None:
    """Write the records, and remove them from the list once they are written."""
    writers: tuple[tuple[type, Callable[[Any], object]], ...] = (
        (Mapping, call_records.record_all),
        (learned_words.Lesson, learned_words.add_all),
        (context_use.Use, context_use.add_all),
        (conversations.Told, conversations.add_all),
    )
    for kind, write in writers:
        if of_kind := [record for record in records if isinstance(record, kind)]:
            write(of_kind)
            records[:] = [record for record in records if not isinstance(record, kind)]


def _write_singly(records: list[Record]) -> None:
    for record in records:
        try:
            _write_all([record])
        except Exception:
            about = record if isinstance(record, Mapping) else record._asdict()
            _log.exception("call not recorded", tool=about.get("tool"), agent=about.get("agent"))


_writer = Writer()
enqueue = _writer.enqueue
start = _writer.start
has_room = _writer.has_room
flush = _writer.flush
stop = _writer.stop
