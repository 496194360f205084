"""A small MCP server over HTTP, whose answers unpack to far more than they are."""

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
_PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
}


class Server(http.server.ThreadingHTTPServer):
    """Answers the methods in ``packs`` compressed, with ``padding`` bytes before what it has to say."""

    daemon_threads = True

    def __init__(self, packs: str, coding: str, *, as_events: bool, padding: int) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.packs, self.coding, self.as_events, self.padding = packs, coding, as_events, padding
        self.accepted: set[str] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/mcp"


@contextlib.contextmanager
def served(
    packs: str = "", coding: str = "gzip", *, as_events: bool = False, padding: int = 0
) -> Iterator[Server]:
    """Serve on a free port."""
    server = Server(packs, coding, as_events=as_events, padding=padding)
    with serving.in_thread(server):
        yield server


class _Answering(http.server.BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.server.accepted.add(self.headers.get("accept-encoding", ""))
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "id" not in asked:
            self._answer(202, {}, b"")
            return
        method = asked["method"]
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": asked["id"]}
        if method in RESULTS:
            answer["result"] = RESULTS[method]
        else:
            answer["error"] = {"code": -32601, "message": "Method not found"}
        body, headers = self._written(json.dumps(answer).encode(), padded=method == self.server.packs)
        if method == self.server.packs:
            headers["content-encoding"] = self.server.coding
            body = _PACKED[self.server.coding](body)
        self._answer(200, headers, body)

    def do_GET(self) -> None:
        self._answer(405, {}, b"")

    do_DELETE = do_GET

    def log_message(self, *args: Any) -> None:
        """Log nothing: the tests' output is theirs."""

    def _written(self, answer: bytes, *, padded: bool) -> tuple[bytes, dict[str, str]]:
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
