"""Does a real server answer in front of Django, see what other processes commit, and end its plugins?"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest
from django.conf import settings

from tests.api.conftest import SETUP
from tests.store.conftest import address
from toolbelt.control import switches

SERVER = (sys.executable, "-m", "uvicorn", "toolbelt.asgi:application")
OPTIONS = ("--lifespan", "on", "--loop", "uvloop", "--no-access-log")
# Says that it was shut down, in a file.
PLUGIN = """
from pathlib import Path

from toolbelt.plugins import contract

class Farewell(contract.ToolPlugin):
    name = namespace = "farewell"
    version = "1"
    tools = ()
    async def initialize(self, runtime): pass
    async def execute(self, tool_name, args): return {}
    async def shutdown(self): Path(__file__).with_name("farewell").touch()
"""


def serve(
    environment: Mapping[str, str], path: Path, protocol: str = "httptools"
) -> tuple[subprocess.Popen[str], int]:
    """Start a server with more settings than the tests', and modules of its own; return it with its port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    running = subprocess.Popen(
        [*SERVER, *OPTIONS, "--http", protocol, "--port", str(port)],
        env={
            **os.environ,
            "TOOLBELT_ENV": "test",
            "DATABASE_URL": address(),
            "DJANGO_SETTINGS_MODULE": "toolbelt.settings",
            "PYTHONPATH": os.pathsep.join([str(path), str(settings.BASE_DIR)]),
            **environment,
        },
        cwd=settings.BASE_DIR,
        stderr=subprocess.PIPE,
        text=True,
    )
    return running, port


@pytest.mark.slow
def test_a_server_answers_in_front_sees_flips_and_ends_its_plugins(ada: str, tmp_path: Path) -> None:
    (tmp_path / "saying_farewell.py").write_text(PLUGIN)
    plugins = tmp_path / "plugins.yaml"
    plugins.write_text("tool_plugins:\n  - module: saying_farewell\n    class_name: Farewell\n")
    running, port = serve(
        {"TOOLBELT_PLUGINS_FILE": str(plugins), "TOOLBELT_PLUGIN_INIT": "start"}, path=tmp_path
    )
    try:
        with httpx.Client(
            base_url=f"http://127.0.0.1:{port}", timeout=60, transport=httpx.HTTPTransport(retries=12)
        ) as client:
            client.headers.update({"Authorization": f"Bearer {ada}", "Host": "localhost"})
            first, second, third = (client.get("/api/v1/agents/ada/surface") for _ in range(3))
            assert first.status_code == 200
            assert first.content == second.content == third.content
            assert first.headers.keys() == third.headers.keys()
            switches.flip(SETUP, "ada", "reading", True)
            flipped = [client.get("/api/v1/agents/ada/surface").json() for _ in range(3)]
            assert all("kb__find" in one["active_tools"] for one in flipped)
    finally:
        running.send_signal(signal.SIGTERM)
        _, log = running.communicate()
    assert (tmp_path / "farewell").exists(), log
    assert running.returncode in (0, -signal.SIGTERM), log
    assert "Traceback" not in log
    assert ada not in log


# Limits that a test need not wait long for.
LIMITS = """
from toolbelt.front import protocol

class Quick(protocol.Protocol):
    head_seconds = 2
    head_bytes = 10_000
"""


@pytest.mark.slow
def test_a_server_neither_waits_for_a_stranger_without_end_nor_takes_all_that_they_send(
    stored: None, tmp_path: Path
) -> None:
    (tmp_path / "quick.py").write_text(LIMITS)
    running, port = serve({"TOOLBELT_BODY_SECONDS": "2"}, path=tmp_path, protocol="quick:Quick")
    try:
        _wait_for(port)
        head = b"POST /healthz HTTP/1.1\r\nHost: localhost\r\n"
        # Only the beginning is sent of each; what comes back says what the server made of that.
        length = head + b"Content-Length: %d\r\n\r\n"
        chunked = head + b"Transfer-Encoding: chunked\r\n\r\n"
        chunks = b"186a0\r\n" + b"x" * 100_000 + b"\r\n"
        assert _answer(port, length % 400_000_000 + b"x" * 5_000_000) == b"413"
        assert _answer(port, chunked + chunks * 3) == b"413"
        assert _answer(port, length % 100 + b"x") == b"408"
        assert _answer(port, head) == b"408"
        assert _answer(port, b"") == b"408"
        assert _answer(port, head + b"X-Long: " + b"x" * 100_000) == b"431"
        assert _answer(port, length % 3 + b"abc") == b"403"  # Django: no CSRF token
        assert _answer(port, head.replace(b"POST", b"GET") + b"\r\n") == b"200"
    finally:
        running.send_signal(signal.SIGTERM)
        _, log = running.communicate()
    assert "Traceback" not in log


def _wait_for(port: int) -> None:
    for _ in range(300):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.1)
        else:
            return


def _answer(port: int, sent: bytes) -> bytes:
    """Return the status that the server answers with, while the client waits."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        client.sendall(sent)
        return client.recv(12)[9:12]
