"""The official SDK's server with sessions, run as a program so that a test can kill and restart it.

``python stateful.py PORT`` supports only the revisions with sessions, and counts the calls since its start.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from typing import Any

from mcp.server.mcpserver import MCPServer

REVISIONS_WITHOUT_SESSIONS = (b"2026-07-28",)


def _application() -> Any:
    server = MCPServer("stateful")
    calls = []

    @server.tool()
    def count() -> str:
        """Return the number of calls since the start."""
        calls.append(1)
        return str(len(calls))

    return server.streamable_http_app()


class WithSessions:
    """Refuses the revision without sessions, as a server does that does not know it."""

    def __init__(self, application: Any) -> None:
        self._application = application

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = dict(scope.get("headers", ()))
        if headers.get(b"mcp-protocol-version") in REVISIONS_WITHOUT_SESSIONS:
            await send({"type": "http.response.start", "status": 404, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        await self._application(scope, receive, send)


class Program:
    """The server as a process, on a port that stays the same across restarts."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/mcp"

    def start(self) -> None:
        """Start the server and wait until it listens."""
        self._process = subprocess.Popen([sys.executable, __file__, str(self._port)])
        deadline = time.monotonic() + 30
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._port), 1):
                return
            assert time.monotonic() < deadline
            assert self._process.poll() is None
            time.sleep(0.05)

    def kill(self) -> None:
        """Kill the server without a shutdown."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)


@contextlib.contextmanager
def running() -> Any:
    """Run the server during a test."""
    program = Program()
    try:
        program.start()
        yield program
    finally:
        program.kill()


if __name__ == "__main__":
    import uvicorn

    uvicorn.run(WithSessions(_application()), host="127.0.0.1", port=int(sys.argv[1]), log_level="critical")
