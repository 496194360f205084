"""Servers over HTTP+SSE, the transport of MCP 2024-11-05: the official SDK's, and one that misbehaves."""

from __future__ import annotations

import contextlib
import http.server
import json
import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any

from mcp.server.mcpserver import Context, MCPServer

from tests.plugins.upstream import listing, serving

TEXT = {"content": [{"type": "text", "text": "echoed"}]}


def _official() -> MCPServer:
    server = MCPServer("old", version="1")

    @server.tool()
    def add(one: int, other: int) -> int:
        """Add two numbers."""
        return one + other

    @server.tool()
    async def steps(ctx: Context[Any]) -> str:
        """Report progress."""
        await ctx.report_progress(1, 2)
        return "done"

    @server.tool()
    async def grow(ctx: Context[Any]) -> str:
        """Add a tool, and notify the client."""
        server.add_tool(lambda: "new", name="fresh", description="Is new.")
        await ctx.session.send_tool_list_changed()
        return "grown"

    return server


@contextlib.contextmanager
def official() -> Iterator[str]:
    """Run a server of the official SDK; yield the address of its stream of events."""
    with serving.running(_official().sse_app()) as address:
        yield address.removesuffix("/mcp") + "/sse"


class Server(http.server.ThreadingHTTPServer):
    """Answers over HTTP+SSE at any path. ``accept`` is called with each message that is posted and returns the status
    and the text of the response; ``messages`` are all of these. ``streams`` take the bytes to send.

    ``endpoint`` is the event that a stream begins with; ``get`` replaces the whole stream by a status and a text.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.endpoint = b"event: endpoint\ndata: /messages?session_id=1\n\n"
        self.get: tuple[int, str, bytes] | None = None
        self.refusal = 405
        self.accept: Callable[[dict[str, Any]], tuple[int, bytes] | None] = lambda message: None
        self.streams: list[queue.SimpleQueue[bytes]] = []
        self.requests: list[tuple[str, str]] = []
        self.headers: list[dict[str, str]] = []
        self.messages: list[dict[str, Any]] = []
        self.over = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/old"

    def send(self, event: bytes) -> None:
        """Send this on the newest stream; nothing ends it."""
        self.streams[-1].put(event)

    def answer(self, message: dict[str, Any]) -> None:
        """Send the answer of an ordinary server on the newest stream."""
        results: dict[str, Any] = {
            "initialize": {
                "protocolVersion": "2024-11-05",
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "old", "version": "1"},
            },
            "tools/list": {"tools": [listing.tool("echo", "Says it again.")]},
            "tools/call": TEXT,
        }
        if message.get("method") in results and "id" in message:
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": results[message["method"]]}
            self.send(b"event: message\ndata: " + json.dumps(answer).encode() + b"\n\n")


@contextlib.contextmanager
def running() -> Iterator[Server]:
    """Run the server on a free port."""
    server = Server()
    with serving.in_thread(server):
        try:
            yield server
        finally:
            server.over.set()
            for stream in server.streams:
                stream.put(b"")


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._note()
        if self.server.get is not None:
            status, kind, body = self.server.get
            self._send(status, body, {"content-type": kind})
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        stream: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.server.streams.append(stream)
        self.wfile.write(self.server.endpoint)
        self.close_connection = True
        with contextlib.suppress(OSError):
            while event := stream.get():
                self.wfile.write(event)

    def do_POST(self) -> None:
        self._note()
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if not self.path.startswith("/messages"):
            self._send(self.server.refusal, b"", {})
            return
        self.server.messages.append(message)
        status, body = self.server.accept(message) or (202, b"Accepted")
        self._send(status, body, {"location": "/messages/moved?session_id=1"} if status == 307 else {})
        if status == 202:
            self.server.answer(message)

    def _note(self) -> None:
        self.server.requests.append((self.command, self.path))
        self.server.headers.append({name.lower(): value for name, value in self.headers.items()})

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *given: Any) -> None:
        """Log nothing."""
