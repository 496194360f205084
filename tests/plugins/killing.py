"""Kills a process that has started others, and looks what becomes of those."""

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
    """Return whether a process runs; a zombie does not."""
    try:
        return ") Z" not in Path("/proc", str(process), "stat").read_text()
    except FileNotFoundError:
        return False


def survivors(program: str, *arguments: str, seconds: float = 20.0) -> list[int]:
    """Run the program, kill it when it has printed the processes that it started, and return those that stay."""
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
    return left_after(started, seconds)


def left_after(processes: Iterable[int], seconds: float = 20.0) -> list[int]:
    """Wait for the end of processes, and return those that are there still; they are killed then."""
    until = time.monotonic() + seconds
    left = list(processes)
    while (left := [process for process in left if is_alive(process)]) and time.monotonic() < until:
        time.sleep(0.05)
    for process in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    return left
