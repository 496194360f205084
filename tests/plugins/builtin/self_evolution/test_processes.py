"""Tests that programs run by the toolkit end when the process that runs them is killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugins import process_kills

RUNNING = """
import os, sys, threading, time
from toolbelt.plugins import orphans
from toolbelt.plugins.builtin.self_evolution import processes

command = ["sh", "-c", "echo $$ > " + sys.argv[1] + "; sleep 300"]
options = dict(directory="/", environment={"PATH": os.environ["PATH"]}, seconds=300, max_bytes=100)
threading.Thread(target=processes.run, args=(command,), kwargs=options, daemon=True).start()
while not (orphans._WATCHDOG._process and os.path.exists(sys.argv[1]) and open(sys.argv[1]).read().strip()):
    time.sleep(0.01)
with orphans._WATCHDOG._lock:  # the watchdog has been notified of the group
    pass
print(open(sys.argv[1]).read(), flush=True)
time.sleep(300)
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="requires /proc")
def test_a_program_ends_when_its_toolbelt_process_is_killed(tmp_path: Path) -> None:
    assert process_kills.survivors(RUNNING, str(tmp_path / "started")) == []
