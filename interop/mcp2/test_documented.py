"""Tests that the documented program with the official client waits for a slow server."""

from __future__ import annotations

import http.server
import os
import subprocess
import sys
import threading
import time
import urllib.request

import documented
import kit

PAGE = documented.PAGES / "connect-an-mcp-client.md"
# Longer than httpx2 waits by default. A server's command that is downloaded first takes as long.
SLOW_SECONDS = 6


class Slow(http.server.BaseHTTPRequestHandler):
    """Pass requests on to Toolbelt, and its list of tools only after a while."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if b'"tools/list"' in body:
            time.sleep(SLOW_SECONDS)
        headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
        with urllib.request.urlopen(urllib.request.Request(kit.ADDRESS + self.path, body, headers)) as answer:
            content = answer.read()
            self.send_response(answer.status)
            for name in ("Content-Type", "Mcp-Session-Id"):
                if name in answer.headers:
                    self.send_header(name, answer.headers[name])
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    def log_message(self, *args: object) -> None:
        """Log nothing."""


def test_the_documented_program_waits_for_a_slow_server() -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    program = PAGE.read_text(encoding="utf-8").partition("**A program**")[2]
    program = program.partition("```text\n")[2].partition("```")[0]
    address = f"http://127.0.0.1:{server.server_port}"
    program = program.replace("http://127.0.0.1:8000", address).replace("mcp/assistant", f"mcp/{kit.AGENT}")
    completed = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "TOOLBELT_TOKEN": kit.TOKEN},
        capture_output=True,
        text=True,
        timeout=60,
    )
    server.shutdown()
    assert "desk__add" in completed.stdout, completed.stderr
