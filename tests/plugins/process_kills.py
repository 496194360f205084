"""Helpers that kill a process which has started others, and check whether those end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path


def is_alive(process: int) -> bool:
    """Return whether a process is running; a zombie is not."""
    try:
        return ") Z" not in Path("/proc", str(process), "stat").read_text()
    except FileNotFoundError:
        return False


def survivors(program: str, *arguments: str, seconds: float = 20.0) -> list[int]:
    """Run the program, kill it once it has printed the processes that it started, and return those still running."""
    with subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    ) as parent:
        assert parent.stdout is not None
        started = [int(word) for word in parent.stdout.readline().split()]
        assert started
        assert all(map(is_alive, started))
        parent.send_signal(signal.SIGKILL)
    return remaining_after(started, seconds)


def remaining_after(processes: Iterable[int], seconds: float = 20.0) -> list[int]:
    """Wait for processes to end; kill and return those that are still running after that time."""
    deadline = time.monotonic() + seconds
    remaining = list(processes)
    while (
        remaining := [process for process in remaining if is_alive(process)]
    ) and time.monotonic() < deadline:
        time.sleep(0.05)
    for process in remaining:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    return remaining
