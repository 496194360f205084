"""A server that stores a value for each connection.

Its tools: ``put`` stores a text, ``get`` returns it, ``who`` returns the process id, ``hold`` runs until a file ``go``
exists. Over pipes, each connection is a process, which leaves a file with its id in the directory: the scripted server,
because the SDK takes a second to load in a process. Over HTTP, it is the official SDK's server, with session ids, in a
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


def _http_server() -> MCPServer:
    server = MCPServer("keeping")
    texts: dict[str, str] = {}

    @server.tool()
    def put(text: str, ctx: Context) -> str:
        """Store a text."""
        texts[_session(ctx)] = text
        return "kept"

    @server.tool()
    def get(ctx: Context) -> str:
        """Return the stored text."""
        return texts.get(_session(ctx), "nothing")

    return server


def _session(ctx: Context) -> str:
    """Return the id of the session."""
    return (ctx.headers or {})["mcp-session-id"]


def over_pipes(directory: Path) -> dict[str, Any]:
    """Return the connection over pipes, as in a belt."""
    script = scripting.Script(directory)
    text = {"text": {"type": "string"}}
    script.lists(*(listing.tool(name, f"Does {name}.", text if name == "put" else None) for name in TOOLS))
    return script.connection


def processes(directory: Path) -> set[int]:
    """Return the ids of the running processes over pipes."""
    return {pid for mark in directory.glob("process-*") if _runs(pid := int(mark.name.partition("-")[2]))}


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@contextlib.contextmanager
def over_http() -> Iterator[str]:
    """Run the server over HTTP; yield its address."""
    with serving.running(stateful.WithSessions(_http_server().streamable_http_app())) as address:
        yield address
