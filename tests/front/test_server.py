"""Tests that a real server sees other processes' commits, limits its clients, and stops its plugins."""

from __future__ import annotations

import signal
import socket
from pathlib import Path

import pytest

from tests.api.conftest import SETUP
from tests.front import processes
from toolbelt.control.access import switches

# Creates a file at shutdown.
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


@pytest.mark.slow
def test_a_server_sees_commits_of_other_processes_and_stops_its_plugins(ada: str, tmp_path: Path) -> None:
    (tmp_path / "saying_farewell.py").write_text(PLUGIN)
    plugins = tmp_path / "plugins.yaml"
    plugins.write_text("tool_plugins:\n  - module: saying_farewell\n    class_name: Farewell\n")
    environment = {"TOOLBELT_PLUGINS_FILE": str(plugins), "TOOLBELT_PLUGIN_INIT": "start"}
    with (
        processes.served(python_path=tmp_path, environment=environment) as server,
        server.client(ada) as client,
    ):
        first, second, third = (client.get("/api/v1/agents/ada/surface") for _ in range(3))
        assert first.status_code == 200
        assert first.content == second.content == third.content
        assert first.headers.keys() == third.headers.keys()
        switches.flip(SETUP, "ada", "reading", True)
        flipped = [client.get("/api/v1/agents/ada/surface").json() for _ in range(3)]
        assert all("kb__find" in surface["active_tools"] for surface in flipped)
    assert (tmp_path / "farewell").exists(), server.log
    assert server.process.returncode in (0, -signal.SIGTERM), server.log
    assert "Traceback" not in server.log
    assert ada not in server.log


# Short limits, so that the test is quick.
LIMITS = """
from toolbelt.front import protocol

class Quick(protocol.Protocol):
    head_seconds = 2
    head_bytes = 10_000
"""


@pytest.mark.slow
def test_a_server_limits_the_time_and_size_of_unauthenticated_requests(stored: None, tmp_path: Path) -> None:
    (tmp_path / "quick.py").write_text(LIMITS)
    environment = {"TOOLBELT_BODY_SECONDS": "2"}
    with processes.served(python_path=tmp_path, environment=environment, protocol="quick:Quick") as server:
        port = server.port
        head = b"POST /healthz HTTP/1.1\r\nHost: localhost\r\n"
        # Only the beginning of each request is sent; the status shows how the server handled it.
        length = head + b"Content-Length: %d\r\n\r\n"
        chunked = head + b"Transfer-Encoding: chunked\r\n\r\n"
        chunks = b"186a0\r\n" + b"x" * 100_000 + b"\r\n"
        assert _answer(port, length % 400_000_000 + b"x" * 5_000_000) == b"413"
        assert _answer(port, chunked + chunks * 3) == b"413"
        assert _answer(port, length % 100 + b"x") == b"408"
        assert _answer(port, head) == b"408"
        assert _answer(port, b"") == b"408"
        assert _answer(port, head + b"X-Long: " + b"x" * 100_000) == b"431"
        assert _answer(port, chunked + b"1\r\nx\r\n0\r\n" + b"a: b\r\n" * 100_000) == b"431"
        upgrade = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        upgrade += b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        assert _answer(port, head.replace(b"POST", b"GET") + upgrade) == b"426"
        assert _answer(port, length % 3 + b"abc") == b"403"  # Django: no CSRF token
        assert _answer(port, head.replace(b"POST", b"GET") + b"\r\n") == b"200"
    assert "Traceback" not in server.log


def _answer(port: int, sent: bytes) -> bytes:
    """Return the status that the server answers with, while the client waits."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        client.sendall(sent)
        return client.recv(12)[9:12]
