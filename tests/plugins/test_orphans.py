"""Tests of started processes when the process that started them is killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.plugins import process_kills

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="requires /proc"),
]

STARTING = """
import subprocess, sys, time
from toolbelt.plugins import orphans
# Ignores SIGTERM and SIGHUP, and has started another process.
child = subprocess.Popen(
    ["sh", "-c", "trap '' TERM HUP; sleep 300 & echo $!; while :; do sleep 1; done"],
    stdout=subprocess.PIPE, text=True, start_new_session=True,
)
grandchild = child.stdout.readline().strip()
"""
PRINTING = """
print(child.pid, grandchild, flush=True)
time.sleep(300)
"""


def test_started_processes_end_when_their_parent_is_killed() -> None:
    within = "with orphans.killed_with_parent(child.pid):" + PRINTING.replace("\n", "\n    ")
    assert process_kills.survivors(STARTING + within) == []


def test_processes_that_are_no_longer_tracked_are_not_ended() -> None:
    untracked = "with orphans.killed_with_parent(child.pid): pass\n"
    assert len(process_kills.survivors(STARTING + untracked + PRINTING, seconds=3.0)) == 2


def test_a_fork_of_the_parent_does_not_keep_its_processes_alive() -> None:
    forking = """
with orphans.killed_with_parent(child.pid):
    import os
    if os.fork() == 0:
        os.close(1)
        time.sleep(30)
        os._exit(0)
"""
    assert process_kills.survivors(STARTING + forking + PRINTING.replace("\n", "\n    ")) == []


def test_a_killed_watchdog_is_replaced() -> None:
    replacing = """
import os, signal
with orphans.killed_with_parent(child.pid):
    standing_by = orphans._WATCHDOG._process
    os.kill(standing_by.pid, signal.SIGKILL)
    standing_by.wait()
    other = subprocess.Popen(["sleep", "300"], start_new_session=True)
    with orphans.killed_with_parent(other.pid):
"""
    printing = PRINTING.replace("print(", "print(other.pid, ").replace("\n", "\n        ")
    assert process_kills.survivors(STARTING + replacing + printing) == []


def test_a_normal_exit_ends_the_watchdog() -> None:
    program = STARTING + (
        "with orphans.killed_with_parent(child.pid): print(orphans._WATCHDOG._process.pid, child.pid, flush=True)\n"
        "import os, signal; os.killpg(child.pid, signal.SIGKILL); child.wait(); child.stdout.close()\n"
    )
    process = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True
    )

    assert process.stderr == ""
    assert process_kills.remaining_after(map(int, process.stdout.split()), 5.0) == []


def test_a_termination_signal_does_not_end_the_watchdog() -> None:
    signalling = """
import os, signal
with orphans.killed_with_parent(child.pid):
    os.kill(orphans._WATCHDOG._process.pid, signal.SIGTERM)
"""
    assert process_kills.survivors(STARTING + signalling + PRINTING.replace("\n", "\n    ")) == []
