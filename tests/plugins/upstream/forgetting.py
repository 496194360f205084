"""A small MCP server over HTTP with one session at a time, which it can forget, in the words of various servers."""

from __future__ import annotations

import contextlib
import http.server
import json
import threading
import uuid
from collections.abc import Iterator
from typing import Any

from tests.plugins.upstream import listing, serving

# How servers refuse a session that they do not know: the HTTP status, and the error or else the text of the answer.
REFUSALS: dict[str, tuple[int, Any]] = {
    "Python SDK 1.x and 2.x": (404, {"code": -32600, "message": "Session not found"}),
    "Python SDK, ended": (404, {"code": -32600, "message": "Not Found: Session has been terminated"}),
    "Python SDK until 1.9": (400, "Bad Request: No valid session ID provided"),
    "TypeScript SDK": (404, {"code": -32001, "message": "Session not found"}),
    "TypeScript SDK, one session": (400, {"code": -32000, "message": "Bad Request: Server not initialized"}),
    "server-everything": (400, {"code": -32000, "message": "Bad Request: No valid session ID provided"}),
    "others": (404, "Unknown session. Send initialize first."),
    "without a word": (404, ""),
}


class Server(http.server.ThreadingHTTPServer):
    """Lists ``tools`` and answers calls of them. Without a session that it knows it refuses in words of REFUSALS."""

    daemon_threads = True

    def __init__(self, refusal: tuple[int, Any]) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.refusal = refusal
        self.tools: list[dict[str, Any]] = [listing.tool("echo", "Says it again.")]
        self.session = ""
        self.begun, self.run = 0, 0
        # A stream that is open holds until it is set.
        self.streams_end = threading.Event()
        # What calls are answered with where the session is known; None: they are run.
        self.answer: tuple[int, Any] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/mcp"

    def forget(self) -> None:
        """Know no session any more, as after a restart."""
        self.session = ""
        self.streams_end.set()


@contextlib.contextmanager
def served(refusal: tuple[int, Any]) -> Iterator[Server]:
    """Serve on a free port."""
    server = Server(refusal)
    with serving.in_thread(server):
        try:
            yield server
        finally:
            server.streams_end.set()


class _Answering(http.server.BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        method, headers = asked["method"], {}
        if method == "initialize":
            self.server.begun += 1
            self.server.session = headers["mcp-session-id"] = uuid.uuid4().hex
            self.server.streams_end.clear()
            result: Any = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "forgetting", "version": "1"},
            }
        elif self.headers.get("mcp-session-id") != self.server.session or not self.server.session:
            self._refuse(asked.get("id"), *self.server.refusal)
            return
        elif "id" not in asked:
            self._send(202, {}, b"")
            return
        elif method == "tools/list":
            result = {"tools": self.server.tools}
        elif self.server.answer is not None:
            self._refuse(asked["id"], *self.server.answer)
            return
        else:
            self.server.run += 1
            result = {"content": [{"type": "text", "text": "echoed"}]}
        answer = {"jsonrpc": "2.0", "id": asked["id"], "result": result}
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
        """Log nothing: the tests' output is theirs."""

    def _refuse(self, id_: Any, status: int, said: Any) -> None:
        if isinstance(said, str):
            self._send(status, {"content-type": "text/plain"}, said.encode())
            return
        body = json.dumps({"jsonrpc": "2.0", "id": id_, "error": said}).encode()
        self._send(status, {"content-type": "application/json"}, body)

    def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.wfile.write(body)
