"""Stops child processes if this process dies without having stopped them itself (``kill -9``, a crash).

Each Toolbelt process that starts other processes has a small watchdog process. The watchdog holds the reading end of a
pipe and knows the process groups. When the writing end closes, Toolbelt is gone, and the watchdog stops the remaining
groups and itself.

``PR_SET_PDEATHSIG`` is no alternative: it only exists on Linux, reaches a process but not those that it started
(``npx`` starts the server), follows the thread that started it instead of the process, and must be set between fork
and exec, which is not safe in Python with threads.

The module requires a POSIX system.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import structlog

_log = structlog.get_logger(__name__)

# The environment variables that Python may need to start.
_LIBRARY_VARIABLES = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
# The signals that stop Toolbelt must not stop the watchdog: a signal to all processes of a service reaches both.
_BLOCKED_SIGNALS = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGTERM})
_PROGRAM = """
import os, signal, sys, time
groups = set()
for line in sys.stdin.buffer:
    change, group = line[:1], int(line[1:])
    if change == b"+":
        groups.add(group)
    else:
        groups.discard(group)
def end(number):
    for group in list(groups):
        try:
            os.killpg(group, number)
        except OSError:
            groups.discard(group)
end(signal.SIGTERM)
for _ in range(20):
    if not groups:
        break
    time.sleep(0.1)
    end(0)
end(signal.SIGKILL)
"""


class _Watchdog:
    """The watchdog process, started with the first process group."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._groups: set[int] = set()

    def add(self, group: int) -> None:
        with self._lock:
            self._groups.add(group)
            if self._process is None or not self._report(b"+", group):
                self._start()

    def remove(self, group: int) -> None:
        with self._lock:
            self._groups.discard(group)
            self._report(b"-", group)

    def close(self) -> None:
        """Stop the watchdog, which first stops the remaining groups."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0 if self._groups else 1)

    def forget(self) -> None:
        """Start over in a forked process, whose copy of the pipe would keep the parent's from closing."""
        self._lock = threading.Lock()
        process, self._process = self._process, None
        self._groups = set()
        if process is not None and process.stdin is not None:
            process.stdin.close()
            # It is not a child of this process, so this process cannot wait for it.
            process.returncode = 0

    def _start(self) -> None:
        # A process inherits the blocked signals of its parent's thread.
        previous_mask = signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED_SIGNALS)
        try:
            process = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-I", "-S", "-c", _PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={name: os.environ[name] for name in _LIBRARY_VARIABLES if name in os.environ},
                cwd="/",
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            _log.warning("no watchdog to stop processes if this one is killed", error=str(error))
            return
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, previous_mask)
        assert process.stdin is not None  # noqa: S101 - it was asked for
        # Starting a process must not wait for the watchdog.
        os.set_blocking(process.stdin.fileno(), False)
        self._process = process
        for group in self._groups:
            self._report(b"+", group)

    def _report(self, change: bytes, group: int) -> bool:
        """Send a change of the groups to the watchdog. Return whether it is running."""
        process = self._process
        if process is None or process.stdin is None:
            return False
        try:
            process.stdin.write(change + b"%d\n" % group)
        except BrokenPipeError:
            process.stdin.close()
            process.wait()
            self._process = None
            return False
        return True


_WATCHDOG = _Watchdog()
atexit.register(_WATCHDOG.close)
os.register_at_fork(after_in_child=_WATCHDOG.forget)


@contextlib.contextmanager
def killed_with_parent(group: int) -> Iterator[None]:
    """Within the block, let the watchdog stop a process group if this process dies."""
    _WATCHDOG.add(group)
    try:
        yield
    finally:
        _WATCHDOG.remove(group)
