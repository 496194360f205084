"""Tests that published servers answer the same through Toolbelt as without it."""

from __future__ import annotations

import functools
import http.server
import threading
from pathlib import Path

import published
import pytest
import servers

HERE = Path(__file__).resolve().parent

rows: dict[str, tuple[str, str]] = {}


class Site(http.server.BaseHTTPRequestHandler):
    """A few pages with constant content."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        text, kind = {
            "/": ((HERE / "site.html").read_text(encoding="utf-8"), "text/html; charset=utf-8"),
            "/other.html": ("<!doctype html><title>Other</title><h1>Other</h1>", "text/html; charset=utf-8"),
            "/data.json": ('{"a": 1}', "application/json"),
        }.get(self.path, ("", ""))
        self.send_response_only(200 if kind else 404)
        self.send_header("Content-Type", kind or "text/plain")
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *args: object) -> None:
        """Log nothing."""


@functools.cache
def site() -> str:
    """Serve the pages until the tests end; return their address."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


SERVERS = {server.name: server for server in servers.servers(published.WORK, site())}


@pytest.mark.parametrize("name", SERVERS)
def test_the_server_answers_the_same_through_toolbelt(name: str) -> None:
    if name in ("playwright", "chrome-devtools") and not servers.browser():
        pytest.skip(f"needs a browser: one of {', '.join(servers.BROWSERS)}")
    rows[name] = published.compare(SERVERS[name])


def test_the_documentation_contains_the_rows_of_this_run() -> None:
    published.check_documented(rows)
