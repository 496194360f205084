"""A real MCP server over Streamable HTTP: the official SDK's, in a thread of the tests, protected by a token."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
from collections.abc import Iterator
from typing import Any

import uvicorn
from mcp.server.mcpserver import Context, MCPServer

TOKEN = "t0ken-of-the-test"
# The MCP methods of the received requests, in order.
received_methods: list[str] = []


def _server() -> MCPServer:
    server = MCPServer("served", version="2")

    @server.tool()
    def add(one: int, other: int) -> int:
        """Add two numbers."""
        return one + other

    @server.tool()
    async def grow(ctx: Context[Any]) -> str:
        """Add a tool, and notify the client."""
        server.add_tool(lambda: "new", name="fresh", description="Is new.")
        await ctx.notify_tools_changed()
        return "grown"

    return server


class _RequireToken:
    """Rejects requests without the token."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if (
            scope["type"] == "http"
            and dict(scope["headers"]).get(b"authorization") != f"Bearer {TOKEN}".encode()
        ):
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b"who are you?"})
            return
        if scope["type"] == "http":
            received_methods.append(dict(scope["headers"]).get(b"mcp-method", b"").decode())
        await self._app(scope, receive, send)


@contextlib.contextmanager
def served() -> Iterator[str]:
    """Run the server on a free port; yield its address."""
    with running(_RequireToken(_server().streamable_http_app())) as address:
        yield address


@contextlib.contextmanager
def running(app: Any) -> Iterator[str]:
    """Run an ASGI application in a thread, on a free port; yield the address of its MCP endpoint."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        server = uvicorn.Server(
            uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1, lifespan="on")
        )
        ready = threading.Event()
        original_startup = server.startup

        async def startup(sockets: Any = None) -> None:
            await original_startup(sockets=sockets)
            ready.set()

        server.startup = startup  # type: ignore[method-assign]
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        assert ready.wait(20)
        try:
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            server.should_exit = True
            thread.join(10)


@contextlib.contextmanager
def in_thread(server: socketserver.BaseServer) -> Iterator[None]:
    """Run a server of the standard library in a thread."""
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
