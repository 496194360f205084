"""Tests that more published servers answer the same through Toolbelt as without it."""

from __future__ import annotations

import functools
import http.server
import threading

import more_servers
import published
import pytest

rows: dict[str, tuple[str, str]] = {}


class Pets(http.server.BaseHTTPRequestHandler):
    """The API that the server of OpenAPI documents offers."""

    def do_GET(self) -> None:
        self._answer(404 if self.path.endswith("/none") else 200, b'{"name": "\xc3\x9cnni"}')

    def do_POST(self) -> None:
        self._answer(200, self.rfile.read(int(self.headers["Content-Length"])))

    def _answer(self, status: int, content: bytes) -> None:
        self.send_response_only(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args: object) -> None:
        """Log nothing."""


@functools.cache
def api() -> str:
    """Serve the API until the tests end; return its address."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pets)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


SERVERS = {server.name: server for server in more_servers.servers(published.WORK, api())}


@pytest.mark.parametrize("name", SERVERS)
def test_the_server_answers_the_same_through_toolbelt(name: str) -> None:
    if name == "cortex" and not more_servers.CORTEX.exists():
        pytest.skip("is published for Linux on x64 only")
    rows[name] = published.compare(SERVERS[name])


def test_the_documentation_contains_the_rows_of_this_run() -> None:
    published.check_documented(rows)
