"""What the strict fakes of providers' services share: a server in a thread of the tests, with a log of its requests."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class Fake(ThreadingHTTPServer):
    """A server, as a context manager. ``log`` has an entry for each request: status, what the model saw, usage."""

    daemon_threads = True

    def __init__(self, handler: type[Handler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.log: list[dict[str, Any]] = []

    @property
    def address(self) -> str:
        """Return the address, without a path."""
        return f"http://127.0.0.1:{self.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.shutdown()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    """A handler that checks each request, and answers with the scripted model."""

    protocol_version = "HTTP/1.1"
    # Otherwise the body waits until the client has acknowledged the headers, which it does late.
    disable_nagle_algorithm = True
    server: Fake

    def body(self) -> dict[str, Any]:
        """Return the document that the client sent."""
        document: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["content-length"])))
        return document

    def answer(self, status: int, document: dict[str, Any], entry: dict[str, Any]) -> None:
        """Log the request, and send a document."""
        self.server.log.append(entry)
        self.write(status, "application/json", json.dumps(document).encode())

    def write(self, status: int, kind: str, data: bytes) -> None:
        """Send these bytes."""
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: Any) -> None:
        """Log nothing, to keep the output of the tests clean."""
