"""Lists that upstream servers send without being asked, and how they are recorded.

There is one thread for each server, which records its newest list: a server that never stops announcing changes does
not keep others from being recorded.
"""

from __future__ import annotations

import dataclasses
import os
import threading
import time
from collections.abc import Callable

import structlog
from django.db import connections as database

from toolbelt.core.imported import importing
from toolbelt.runtime import secrets

# Called with a server's name and its list; toolbelt.control registers it.
Listener = Callable[[str, importing.ServerListing], object]

# The pause until a server that would ask users is reported again, in seconds.
REPORT_PAUSE = 60.0

_log = structlog.get_logger(__name__)
_lock = threading.Lock()
_threads: set[threading.Thread] = set()
# The newest list of each server that is not yet recorded, and the servers whose lists are being recorded.
_pending: dict[str, importing.ServerListing] = {}
_recording: set[str] = set()
_listener: Listener | None = None
_question_listener: Callable[[str], object] | None = None
# Until when each server that would ask users is not reported again.
_silent_until: dict[str, float] = {}


def register(listener: Listener | None) -> None:
    """Register the function that is called with a server's list when it connects or announces a change."""
    global _listener
    _listener = listener


def record(name: str, answer: importing.ServerListing) -> None:
    """Notify the listener, in a thread: it writes to the database, and this is the event loop of all servers."""
    with _lock:
        if _listener is None:
            return
        _pending[name] = masked(answer)
        if name in _recording:
            return
        _recording.add(name)
    in_thread(lambda: _record(name))


def masked(answer: importing.ServerListing) -> importing.ServerListing:
    """Return the answer without secrets in the texts that are recorded and shown."""
    return dataclasses.replace(answer, error=secrets.mask(answer.error), stderr=secrets.mask(answer.stderr))


def set_question_listener(listener: Callable[[str], object] | None) -> None:
    """Register the function that is called with the name of a server that would ask users and has no entry for that."""
    global _question_listener
    _question_listener = listener


def report_would_ask(name: str) -> None:
    """Report that a server would ask users, in a thread, and not too often."""
    now = time.monotonic()
    with _lock:
        listener = _question_listener
        if listener is None or now < _silent_until.get(name, 0.0):
            return
        _silent_until[name] = now + REPORT_PAUSE
    in_thread(lambda: listener(name))


def in_thread(work: Callable[[], object]) -> None:
    """Run work in a thread that only :func:`finish` waits for."""

    def run() -> None:
        try:
            work()
        except Exception:
            _log.exception("work for an upstream server failed")
        finally:
            database.close_all()
            _threads.discard(threading.current_thread())

    thread = threading.Thread(target=run, name="toolbelt-upstream", daemon=True)
    _threads.add(thread)
    thread.start()


def finish(within: float) -> None:
    """Wait for each thread for at most this many seconds, and forget which servers would ask users."""
    for thread in [*_threads]:
        thread.join(within)
    _silent_until.clear()


def _record(name: str) -> None:
    """Notify the listener of this server's lists until all are recorded."""
    while True:
        with _lock:
            answer, listener = _pending.pop(name, None), _listener
            if answer is None or listener is None:
                _recording.discard(name)
                return
        try:
            listener(name, answer)
        except Exception:
            _log.exception("list of an upstream server not recorded", server=name)


def _forget() -> None:
    """Forget the parent's threads in a child process."""
    _threads.clear()
    _pending.clear()
    _recording.clear()
    _silent_until.clear()


os.register_at_fork(after_in_child=_forget)
