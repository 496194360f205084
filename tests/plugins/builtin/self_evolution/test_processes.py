"""Programs that the toolkit runs, when the process that runs them is killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugins import killing

RUNNING = """
import os, sys, threading, time
from toolbelt.plugins import orphans
from toolbelt.plugins.builtin.self_evolution import processes

command = ["sh", "-c", "echo $$ > " + sys.argv[1] + "; sleep 300"]
asked = dict(directory="/", environment={"PATH": os.environ["PATH"]}, seconds=300, max_bytes=100)
threading.Thread(target=processes.run, args=(command,), kwargs=asked, daemon=True).start()
while not (orphans._STANDBY._process and os.path.exists(sys.argv[1]) and open(sys.argv[1]).read().strip()):
    time.sleep(0.01)
with orphans._STANDBY._lock:  # the process that stands by has been told of the group
    pass
print(open(sys.argv[1]).read(), flush=True)
time.sleep(300)
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes as Linux shows them")
def test_a_program_does_not_outlive_a_toolbelt_that_is_killed(tmp_path: Path) -> None:
    assert killing.survivors(RUNNING, str(tmp_path / "started")) == []
