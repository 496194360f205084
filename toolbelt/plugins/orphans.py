"""Ends the processes that were started here, when this process is gone without having done so (``kill -9``, a crash).

One small process stands by for each process of Toolbelt that starts others. It holds the reading end of a pipe and
knows which process groups there are. When the writing end closes, Toolbelt is gone, however that came about: it ends
the groups that are left, and itself.

Why not ``PR_SET_PDEATHSIG``: that is Linux's alone, reaches a process and not those that it started (``npx`` starts the
server), follows the thread that started it and not the process, and has to be set between fork and exec, where Python
with threads is not safe.

It needs a POSIX system when it is imported.
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

# All that Python may need of the environment to start.
_LIBRARIES = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
# What ends Toolbelt must not end what stands by: a signal to all processes of a service comes to both.
_HELD_BACK = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGTERM})
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


class _Standby:
    """The process that stands by, started with the first group that there is."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._groups: set[int] = set()

    def add(self, group: int) -> None:
        with self._lock:
            self._groups.add(group)
            if self._process is None or not self._told(b"+", group):
                self._start()

    def remove(self, group: int) -> None:
        with self._lock:
            self._groups.discard(group)
            self._told(b"-", group)

    def close(self) -> None:
        """Let it end; it ends what is still there first."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0 if self._groups else 1)

    def forget(self) -> None:
        """Begin anew in a forked process: this one's pipe would keep the other one's from closing."""
        self._lock = threading.Lock()
        process, self._process = self._process, None
        self._groups = set()
        if process is not None and process.stdin is not None:
            process.stdin.close()
            # It is no child of this process, which cannot wait for it.
            process.returncode = 0

    def _start(self) -> None:
        # A process begins with the signals held back that its parent's thread holds back, and goes on like that.
        held = signal.pthread_sigmask(signal.SIG_BLOCK, _HELD_BACK)
        try:
            process = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-I", "-S", "-c", _PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={name: os.environ[name] for name in _LIBRARIES if name in os.environ},
                cwd="/",
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            _log.warning("nothing stands by to end processes if this one is killed", error=str(error))
            return
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, held)
        assert process.stdin is not None  # noqa: S101 - it was asked for
        # Whoever starts a process does not wait for this one.
        os.set_blocking(process.stdin.fileno(), False)
        self._process = process
        for group in self._groups:
            self._told(b"+", group)

    def _told(self, change: bytes, group: int) -> bool:
        """Name a group to it; return whether it is there to hear it."""
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


_STANDBY = _Standby()
atexit.register(_STANDBY.close)
os.register_at_fork(after_in_child=_STANDBY.forget)


@contextlib.contextmanager
def ended_with_this_process(group: int) -> Iterator[None]:
    """Have a process group ended if this process goes away within; whoever leaves has ended it themselves."""
    _STANDBY.add(group)
    try:
        yield
    finally:
        _STANDBY.remove(group)
