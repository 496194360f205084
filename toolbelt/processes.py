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

from toolbelt.control import alerts, self_checks, trial_rounds
from toolbelt.control.access import expirations
from toolbelt.control.agents import connection_cleanup
from toolbelt.control.config import settings_log
from toolbelt.control.people import logins, unused_clients
from toolbelt.control.servers import client_plugins, elicitation, running_tools, upstream_servers
from toolbelt.control.servers import plugins as listed_plugins
from toolbelt.runtime import (
    alert_messages,
    availability,
    code_toolkits,
    credentials,
    operators,
    plugins,
    process_problems,
    semantic_search,
    telemetry,
)
from toolbelt.runtime.records import context_use, learning, record_writer
from toolbelt.runtime.upstream import process_connections

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
    settings_log,
    plugins,
    credentials,
    expirations,
    running_tools,
    unused_clients,
    logins,
    self_checks,
    alerts,
    trial_rounds,
)

_log = structlog.get_logger(__name__)


class Runtime:
    """What this process runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started: set[Kind] = set()

    def connect(self) -> None:
        """Let `runtime` and `control` call each other, although neither imports the other. For Django's start."""
        code_toolkits.register()
        alerts.register(alert_messages.send)
        learning.register()
        running_tools.register(plugins.runnable, process_problems.find)
        connection_cleanup.listen(process_connections.close_claimed)
        process_connections.watch_catalogs()
        operators.OPERATORS.record_list = upstream_servers.record_unsolicited
        operators.OPERATORS.request_review = elicitation.request_review
        operators.OPERATORS.record_failure = listed_plugins.record_failure
        operators.OPERATORS.declare = client_plugins.declare_from_program

    def start(self, kind: Kind) -> None:
        """Start what a process of this kind runs. Further calls have no effect until :meth:`stop`.

        A process that ends without calling it stops everything at its exit.
        """
        if kind in self._started:
            return
        with self._lock:
            if kind in self._started:
                return
            for part in SERVER_PARTS if kind == "server" else COMMAND_PARTS:
                if hasattr(part, "start"):
                    part.start()
            if kind == "server":
                # What is loaded by now stays; searching it for garbage would hold up all requests for 0.1 s each time.
                gc.freeze()
            atexit.register(self.stop)
            self._started.add(kind)

    def stop(self, grace: float | None = None) -> None:
        """Stop what runs, and write what is left to write. With ``grace``, each part has this many seconds to stop."""
        self._started.clear()
        atexit.unregister(self.stop)
        for part in reversed(SERVER_PARTS):
            if hasattr(part, "stop"):
                _stop(part.stop, part.__name__.rpartition(".")[2], grace)


RUNTIME = Runtime()
start_all = RUNTIME.start
stop_all = RUNTIME.stop


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
