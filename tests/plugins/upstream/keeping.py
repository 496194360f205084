"""A server that keeps state for each connection.

Its tools: ``put`` keeps a text, ``get`` returns what was kept, ``who`` names the process, ``hold`` runs until there is
a file ``go``. Over pipes, each process is a connection, and leaves a file with its id in the directory: the scripted
server, because the SDK takes a process a second to load. Over HTTP, it is the official SDK's, with session ids, in a
thread of the tests.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import Context, MCPServer

from tests.plugins.upstream import listing, scripting, serving, stateful

TOOLS = ("put", "get", "who", "hold")


def _served() -> MCPServer:
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

    return server


def _session(ctx: Context) -> str:
    """Return the id of the session."""
    return (ctx.headers or {})["mcp-session-id"]


def over_pipes(directory: Path) -> dict[str, Any]:
    """Return how it is reached over pipes, as a belt has it."""
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
def over_http() -> Iterator[str]:
    """Serve it over HTTP, and yield its address."""
    with serving.running(stateful.WithSessions(_served().streamable_http_app())) as address:
        yield address
