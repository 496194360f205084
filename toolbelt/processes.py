"""What a process of an installation runs besides its answers: the one list of what starts with it, and stops.

There are two kinds of process. A server, under ASGI or WSGI, does everything; a command that runs tools writes what it
has to before it ends, so it needs no background threads.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import threading
from collections.abc import Callable, Iterator
from typing import Literal

import structlog

from toolbelt.control.access import expirations
from toolbelt.control.servers import running_tools
from toolbelt.runtime import availability, credentials, plugins, semantic_search, telemetry
from toolbelt.runtime.records import context_use, record_writer

Kind = Literal["server", "command"]

# Each has a `start` or a `stop`, or both. They stop in reverse: what a stopping plugin leaves is still recorded, and
# what is recorded is still traced.
COMMAND_PARTS = (telemetry, semantic_search)
SERVER_PARTS = (
    telemetry,
    semantic_search,
    availability,
    record_writer,
    context_use,
    plugins,
    credentials,
    expirations,
    running_tools,
)

_log = structlog.get_logger(__name__)
_lock = threading.Lock()
_started: set[Kind] = set()


def start_all(kind: Kind) -> None:
    """Start what a process of this kind runs. Further calls have no effect until :func:`stop_all`.

    A process that ends without calling it stops everything at its exit.
    """
    if kind in _started:
        return
    with _lock:
        if kind in _started:
            return
        for part in SERVER_PARTS if kind == "server" else COMMAND_PARTS:
            if hasattr(part, "start"):
                part.start()
        if kind == "server":
            # What is loaded by now stays; searching it for garbage would hold up all requests for 0.1 s each time.
            gc.freeze()
        atexit.register(stop_all)
        _started.add(kind)


def stop_all(grace: float | None = None) -> None:
    """Stop what runs, and write what is left to write. With ``grace``, each part has this many seconds to stop."""
    _started.clear()
    atexit.unregister(stop_all)
    for part in reversed(SERVER_PARTS):
        if hasattr(part, "stop"):
            _stop(part.stop, part.__name__.rpartition(".")[2], grace)


@contextlib.contextmanager
def command() -> Iterator[None]:
    """Run tools within the block, as the command of an operator."""
    start_all("command")
    try:
        # This process may run what the servers do not.
        running_tools.restore()
        yield
    finally:
        stop_all()


def _stop(stop: Callable[[], object], name: str, seconds: float | None) -> None:
    """Call ``stop``, within a time limit in a thread of its own; log if it fails or does not finish."""

    def run() -> None:
        try:
            stop()
        except Exception:
            _log.exception("not stopped", part=name)

    if seconds is None:
        # Also at exit, when no thread can be started.
        run()
        return
    stopping = threading.Thread(target=run, name="toolbelt-stop", daemon=True)
    stopping.start()
    stopping.join(seconds)
    if stopping.is_alive():
        _log.error("not stopped", part=name, seconds=seconds)
