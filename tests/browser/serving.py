"""A server that streams revisions to open pages, as in production, in a process of its own."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

# How long a server may take to end, on a machine that is busy with other tests.
SECONDS_TO_END = 120


@contextlib.contextmanager
def run(file: Path) -> Iterator[str]:
    """Serve the SQLite database in ``file``; yield the address."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "uvicorn",
        "toolbelt.asgi:application",
        "--port",
        str(port),
        "--no-access-log",
    ]
    environment = {
        **os.environ,
        "TOOLBELT_ENV": "test",
        # No process runs the demo's tools here.
        "TOOLBELT_RUNNING_SECONDS": "0",
        "DATABASE_URL": f"sqlite:///{file}",
    }
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    for _ in range(300):
        with contextlib.suppress(OSError), socket.create_connection(("localhost", port)):
            break
        time.sleep(0.1)
    yield f"http://localhost:{port}"
    process.terminate()
    process.wait(SECONDS_TO_END)
