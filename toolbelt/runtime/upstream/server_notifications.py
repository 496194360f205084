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
from toolbelt.runtime.operators import OPERATORS

# The pause until a server that would ask users is reported again, in seconds.
REPORT_PAUSE = 60.0

_log = structlog.get_logger(__name__)
_lock = threading.Lock()
_threads: set[threading.Thread] = set()
# Completes a list before it is recorded, in a thread that may block.
Complete = Callable[[importing.ServerListing], importing.ServerListing]
# The newest list of each server that is not yet recorded, and the servers whose lists are being recorded.
_pending: dict[str, tuple[importing.ServerListing, Complete]] = {}
_recording: set[str] = set()
# Until when each server that would ask users is not reported again.
_silent_until: dict[str, float] = {}


def record(name: str, answer: importing.ServerListing, complete: Complete = lambda answer: answer) -> None:
    """Have operators' side record a server's list, in a thread: this is the event loop of all servers."""
    if OPERATORS.record_list is None:
        return
    with _lock:
        _pending[name] = masked(answer), complete
        if name in _recording:
            return
        _recording.add(name)
    in_thread(lambda: _record(name))


def masked(answer: importing.ServerListing) -> importing.ServerListing:
    """Return the answer without secrets in the texts that are recorded and shown."""
    return dataclasses.replace(answer, error=secrets.mask(answer.error), stderr=secrets.mask(answer.stderr))


def report_would_ask(name: str) -> None:
    """Report that a server would ask users, in a thread, and not too often."""
    now, request_review = time.monotonic(), OPERATORS.request_review
    with _lock:
        if request_review is None or now < _silent_until.get(name, 0.0):
            return
        _silent_until[name] = now + REPORT_PAUSE
    in_thread(lambda: request_review(name))


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
    """Have this server's lists recorded until all are."""
    while True:
        with _lock:
            pending, record_list = _pending.pop(name, None), OPERATORS.record_list
            if pending is None or record_list is None:
                _recording.discard(name)
                return
        try:
            answer, complete = pending
            record_list(name, complete(answer))
        except Exception:
            _log.exception("list of an upstream server not recorded", server=name)


def _forget() -> None:
    """Forget the parent's threads in a child process."""
    _threads.clear()
    _pending.clear()
    _recording.clear()
    _silent_until.clear()


os.register_at_fork(after_in_child=_forget)
