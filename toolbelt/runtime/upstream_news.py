"""Who is told what upstream servers list, when nobody asked for it?

One thread for each server, and the newest answer: one that never stops telling keeps nobody else from writing.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

import structlog
from django.db import connections as database

from toolbelt.plugins.upstream import importing

# Told what a server lists, by its name; the operators' door listens.
Listener = Callable[[str, importing.Answer], object]

_log = structlog.get_logger(__name__)
_lock = threading.Lock()
_threads: set[threading.Thread] = set()
# What servers told that is not yet recorded, the newest of each; and whose is being recorded now.
_untold: dict[str, importing.Answer] = {}
_recording: set[str] = set()
_listener: Listener | None = None


def tell(listener: Listener | None) -> None:
    """Let ``listener`` be told what servers list, when they come or say that it changed."""
    global _listener
    _listener = listener


def told(name: str, answer: importing.Answer) -> None:
    """Tell the listener, in a thread: it writes to the database, and here runs the loop of all servers."""
    with _lock:
        if _listener is None:
            return
        _untold[name] = answer
        if name in _recording:
            return
        _recording.add(name)
    in_thread(lambda: _record(name))


def in_thread(work: Callable[[], object]) -> None:
    """Do what nobody waits for, until :func:`finish`."""

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
    """Wait for what is still being done, each for so many seconds."""
    for thread in [*_threads]:
        thread.join(within)


def _record(name: str) -> None:
    """Tell the listener what this server told, until there is no more of it."""
    while True:
        with _lock:
            answer, listener = _untold.pop(name, None), _listener
            if answer is None or listener is None:
                _recording.discard(name)
                return
        try:
            listener(name, answer)
        except Exception:
            _log.exception("what an upstream server told was not recorded", server=name)


def _forget() -> None:
    """In a child process: the threads are its parent's."""
    _threads.clear()
    _untold.clear()
    _recording.clear()


os.register_at_fork(after_in_child=_forget)
