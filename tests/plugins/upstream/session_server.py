"""A small MCP server over HTTP with a single session, which it can forget and then refuse like various real servers."""

from __future__ import annotations

import contextlib
import http.server
import json
import threading
import uuid
from collections.abc import Iterator
from typing import Any

from tests.plugins.upstream import listing, serving

FAILED = {"content": [{"type": "text", "text": "Session not found"}], "isError": True}
# How servers refuse an unknown session: the HTTP status, and the JSON-RPC error, the tool's result or the text of the
# response.
REFUSALS: dict[str, tuple[int, Any]] = {
    "Python SDK 1.x and 2.x": (404, {"code": -32600, "message": "Session not found"}),
    "Python SDK, ended": (404, {"code": -32600, "message": "Not Found: Session has been terminated"}),
    "Python SDK until 1.9": (400, "Bad Request: No valid session ID provided"),
    "TypeScript SDK": (404, {"code": -32001, "message": "Session not found"}),
    "TypeScript SDK, one session": (400, {"code": -32000, "message": "Bad Request: Server not initialized"}),
    "server-everything": (400, {"code": -32000, "message": "Bad Request: No valid session ID provided"}),
    "Python SDK, without an id": (400, {"code": -32600, "message": "Bad Request: Missing session ID"}),
    "TypeScript SDK, without an id": (
        400,
        {"code": -32000, "message": "Bad Request: Mcp-Session-Id header is required"},
    ),
    "Go SDK": (404, "session not found"),
    "Go SDK, during a handshake": (400, 'method "tools/call" is invalid during session initialization'),
    "another for Go": (400, "Invalid session ID"),
    "rmcp": (401, "Unauthorized: Session not found"),
    "rmcp, without an id": (422, "Unexpected message, expect initialize request"),
    "C# SDK": (
        400,
        "Bad Request: A new session can only be created by an initialize request. Include a valid Mcp-Session-Id.",
    ),
    "Java SDK": (400, {"code": -32600, "message": "Session ID required in mcp-session-id header"}),
    "an unknown header": (400, {"code": -32000, "message": "Bad Request: Unknown Mcp-Session-Id header"}),
    "others": (404, "Unknown session. Send initialize first."),
    "empty response": (404, ""),
    "gone": (410, "The session has ended."),
    "an empty 400": (400, ""),
    "an id of a connection": (400, {"code": -32000, "message": "Bad Request: Unknown connection id"}),
    "a transport": (400, {"error": "No transport found for sessionId"}),
    "invalid parameters": (400, {"code": -32602, "message": "Invalid session id"}),
    "a conflict": (409, {"code": -32001, "message": "Session not found"}),
    "an internal error": (500, {"code": -32603, "message": "Session not found"}),
    "unavailable": (503, {"code": -32001, "message": "MCP session is unknown or expired"}),
    "unauthorized": (401, "session expired"),
    "200": (200, {"code": -32001, "message": "Session not found or expired"}),
    "200, without an id": (
        200,
        '{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"No valid session"}}',
    ),
    "200, of another request": (
        200,
        '{"jsonrpc":"2.0","id":"x","error":{"code":-32001,"message":"Session expired"}}',
    ),
    "an event": (200, 'event: message\ndata: {"error":"Session not found"}\n\n'),
}


class Server(http.server.ThreadingHTTPServer):
    """Lists ``tools`` and answers calls to them. Requests without a known session get the given refusal."""

    daemon_threads = True

    def __init__(self, refusal: tuple[int, Any]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.refusal = refusal
        self.tools: list[dict[str, Any]] = [listing.tool("echo", "Says it again.")]
        self.session = ""
        self.sessions_started, self.calls_run, self.lists_read = 0, 0, 0
        # Open streams end when this is set.
        self.streams_end = threading.Event()
        # The refusal of calls in a known session; None to run them. How many were refused.
        self.answer: tuple[int, Any] | None = None
        self.calls_refused = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/mcp"

    def forget(self) -> None:
        """Forget the session, as after a restart."""
        self.session = ""
        self.streams_end.set()


@contextlib.contextmanager
def running(refusal: tuple[int, Any]) -> Iterator[Server]:
    """Run the server on a free port."""
    server = Server(refusal)
    with serving.in_thread(server):
        try:
            yield server
        finally:
            server.streams_end.set()


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        method, headers = request["method"], {}
        if method == "initialize":
            self.server.sessions_started += 1
            self.server.session = headers["mcp-session-id"] = uuid.uuid4().hex
            self.server.streams_end.clear()
            result: Any = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "forgetting", "version": "1"},
            }
        elif self.headers.get("mcp-session-id") != self.server.session or not self.server.session:
            self._refuse(request.get("id"), *self.server.refusal)
            return
        elif "id" not in request:
            self._send(202, {}, b"")
            return
        elif method == "tools/list":
            self.server.lists_read += 1
            result = {"tools": self.server.tools}
        elif self.server.answer is not None:
            self.server.calls_refused += 1
            self._refuse(request["id"], *self.server.answer)
            return
        else:
            self.server.calls_run += 1
            result = {"content": [{"type": "text", "text": "echoed"}]}
        answer = {"jsonrpc": "2.0", "id": request["id"], "result": result}
        self._send(200, {**headers, "content-type": "application/json"}, json.dumps(answer).encode())

    def do_GET(self) -> None:
        if self.headers.get("mcp-session-id") != self.server.session or not self.server.session:
            self._refuse(None, *self.server.refusal)
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(b"retry: 10\n\n: open\n\n")
        self.wfile.flush()
        self.server.streams_end.wait(30)
        self.close_connection = True

    def do_DELETE(self) -> None:
        self._send(405, {}, b"")

    def log_message(self, *args: Any) -> None:
        """Log nothing, to keep the output of the tests clean."""

    def _refuse(self, id_: Any, status: int, error: Any) -> None:
        if isinstance(error, str):
            kind = {"{": "application/json", "e": "text/event-stream"}.get(error[:1], "text/plain")
            self._send(status, {"content-type": kind}, error.encode())
            return
        name = "result" if "content" in error else "error"
        body = json.dumps({"jsonrpc": "2.0", "id": id_, name: error}).encode()
        self._send(status, {"content-type": "application/json"}, body)

    def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.wfile.write(body)
