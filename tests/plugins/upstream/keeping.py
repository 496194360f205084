"""The official SDK's server, run as a program, that keeps state for each connection.

``python keeping.py DIRECTORY`` speaks over its pipes: a process is a connection. ``python keeping.py DIRECTORY PORT``
speaks HTTP with session ids. Its tools: ``put`` keeps a text, ``get`` returns what was kept, ``who`` names the process,
``hold`` runs until there is a file ``go``. Each process over pipes leaves a file with its id in the directory. For
tests that need many processes there is a quick one without the SDK, which has no ``hold``: :func:`quick`.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
from mcp.server.mcpserver import Context, MCPServer

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.plugins.upstream import listing, scripting

TOOLS = ("put", "get", "who", "hold")


def served(directory: Path) -> MCPServer:
    server = MCPServer("keeping")
    kept: dict[str, str] = {}

    @server.tool()
    def put(text: str, ctx: Context) -> str:
        """Keep a text."""
        kept[_session(ctx)] = text
        return "kept"

    @server.tool()
    def get(ctx: Context) -> str:
        """Return the text that was kept."""
        return kept.get(_session(ctx), "nothing")

    @server.tool()
    def who() -> str:
        """Name this process."""
        return f"process {os.getpid()}"

    @server.tool()
    async def hold() -> str:
        """Run until there is a file named go."""
        mark = directory / f"begun-{uuid.uuid4()}"
        mark.touch()
        try:
            while not (directory / "go").exists():  # noqa: ASYNC110 (another process makes it)
                await anyio.sleep(0.02)
        except anyio.get_cancelled_exc_class():
            (directory / mark.name.replace("begun", "cancelled")).touch()
            raise
        return "held"

    return server


def _session(ctx: Context) -> str:
    """Return the id of the session over HTTP; over pipes the process is the session."""
    return (ctx.headers or {}).get("mcp-session-id", "")


def connection(directory: Path) -> dict[str, Any]:
    """Return how it is reached over its pipes, as a belt has it."""
    return {"command": sys.executable, "args": [__file__, str(directory)]}


def quick(directory: Path) -> dict[str, Any]:
    """Return how the quick one is reached, as a belt has it."""
    script = scripting.Script(directory)
    text = {"text": {"type": "string"}}
    script.lists(*(listing.tool(name, f"Does {name}.", text if name == "put" else None) for name in TOOLS))
    return script.connection


def processes(directory: Path) -> set[int]:
    """Return the ids of the processes over pipes that run."""
    return {pid for mark in directory.glob("process-*") if _runs(pid := int(mark.name.partition("-")[2]))}


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@contextlib.contextmanager
def over_http(directory: Path) -> Iterator[str]:
    """Run it over HTTP, and return its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, __file__, str(directory), str(port)])
    try:
        end = time.monotonic() + 30
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            assert time.monotonic() < end
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait(10)


def main(directory: Path, port: str = "") -> None:
    if port:
        import uvicorn

        from tests.plugins.upstream import stateful

        application = stateful.WithSessions(served(directory).streamable_http_app())
        uvicorn.run(application, host="127.0.0.1", port=int(port), log_level="critical")
        return
    (directory / f"process-{os.getpid()}").touch()
    served(directory).run()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
