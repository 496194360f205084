"""A real server as an installation runs it: uvicorn in separate processes, on the tests' database."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx
from django.conf import settings

from tests.store.conftest import address

OPTIONS = ("--lifespan", "on", "--loop", "uvloop", "--no-access-log")


class Served:
    """A running server. ``log`` holds its output once it has stopped."""

    def __init__(self, port: int, process: subprocess.Popen[str]) -> None:
        self.port, self.url, self.process = port, f"http://127.0.0.1:{port}", process
        self.log = ""

    def client(self, token: str = "") -> httpx.Client:
        """Return a client that waits for the server to listen, and sends the token if given."""
        headers = {"Host": "localhost"} | ({"Authorization": f"Bearer {token}"} if token else {})
        return httpx.Client(
            base_url=self.url, timeout=60, headers=headers, transport=httpx.HTTPTransport(retries=12)
        )


@contextlib.contextmanager
def served(
    *,
    python_path: Path | None = None,
    workers: int = 1,
    environment: Mapping[str, str] | None = None,
    protocol: str = "httptools",
) -> Iterator[Served]:
    """Run a server until the block ends, then stop it as a supervisor does.

    Modules in ``python_path`` can be imported; ``environment`` extends that of the tests; ``protocol`` is
    uvicorn's choice of an HTTP implementation.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    paths = [str(python_path)] if python_path is not None else []
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "uvicorn", "toolbelt.asgi:application", *OPTIONS),
            *("--http", protocol, "--port", str(port), "--workers", str(workers)),
        ],
        env={
            **os.environ,
            "TOOLBELT_ENV": "test",
            # Many tests store plugins that no process runs.
            "TOOLBELT_RUNNING_SECONDS": "0",
            "DATABASE_URL": address(),
            "DJANGO_SETTINGS_MODULE": "toolbelt.settings",
            "PYTHONPATH": os.pathsep.join([*paths, str(settings.BASE_DIR)]),
            **(environment or {}),
        },
        cwd=settings.BASE_DIR,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    running = Served(port, process)
    try:
        _await_answer(running)
        yield running
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            _, running.log = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            _, running.log = process.communicate()


def _await_answer(running: Served) -> None:
    with running.client() as client:
        for _ in range(300):
            with contextlib.suppress(httpx.TransportError):
                client.get("/healthz")
                return
            if running.process.poll() is not None:
                raise AssertionError(f"the server ended: {running.process.communicate()[1]}")
            time.sleep(0.1)
    raise AssertionError("the server does not answer")
