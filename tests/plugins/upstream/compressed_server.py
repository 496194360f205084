"""A small MCP server over HTTP whose compressed responses expand to a far larger size."""

from __future__ import annotations

import contextlib
import gzip
import http.server
import json
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from tests.plugins.upstream import listing, serving

RESULTS: dict[str, Any] = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "packing", "version": "1"},
    },
    "tools/list": {"tools": [listing.tool("echo")]},
    "tools/call": {"content": [{"type": "text", "text": "echoed"}]},
}
_COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
}


class Server(http.server.ThreadingHTTPServer):
    """Compresses its response to ``compressed_method``, with ``padding`` bytes before the message."""

    daemon_threads = True

    def __init__(self, compressed_method: str, coding: str, *, as_events: bool, padding: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.compressed_method, self.coding, self.as_events, self.padding = (
            compressed_method,
            coding,
            as_events,
            padding,
        )
        self.accepted: set[str] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/mcp"


@contextlib.contextmanager
def running(
    compressed_method: str = "", coding: str = "gzip", *, as_events: bool = False, padding: int = 0
) -> Iterator[Server]:
    """Run the server on a free port."""
    server = Server(compressed_method, coding, as_events=as_events, padding=padding)
    with serving.in_thread(server):
        yield server


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.server.accepted.add(self.headers.get("accept-encoding", ""))
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "id" not in request:
            self._answer(202, {}, b"")
            return
        method = request["method"]
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
        if method in RESULTS:
            answer["result"] = RESULTS[method]
        else:
            answer["error"] = {"code": -32601, "message": "Method not found"}
        body, headers = self._body(
            json.dumps(answer).encode(), padded=method == self.server.compressed_method
        )
        if method == self.server.compressed_method:
            headers["content-encoding"] = self.server.coding
            body = _COMPRESS[self.server.coding](body)
        self._answer(200, headers, body)

    def do_GET(self) -> None:
        self._answer(405, {}, b"")

    do_DELETE = do_GET

    def log_message(self, *args: Any) -> None:
        """Log nothing, to keep the output of the tests clean."""

    def _body(self, answer: bytes, *, padded: bool) -> tuple[bytes, dict[str, str]]:
        size = self.server.padding if padded else 0
        if self.server.as_events:
            line = b":" + b" " * 1_000 + b"\n"
            return line * (size // len(line)) + b"data: " + answer + b"\n\n", {
                "content-type": "text/event-stream"
            }
        return b" " * size + answer, {"content-type": "application/json"}

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.wfile.write(body)
