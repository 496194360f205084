"""Servers on this machine that receive alerts: by HTTP, and as mail."""

from __future__ import annotations

import contextlib
import email
import email.policy
import socketserver
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Receiver:
    """What was received: the path, headers and body of each request; it answers ``status``, with headers that never end
    if ``is_endless``.
    """

    address: str = ""
    status: int = 200
    is_endless: bool = False
    received: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)


@contextlib.contextmanager
def receiving() -> Iterator[Receiver]:
    """Serve within the block."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.received.append((self.path, headers, body))
            self.send_response(receiver.status)
            self.send_header("location", "/elsewhere")
            while receiver.is_endless:
                self.send_header("x-more", "1")
                try:
                    self.flush_headers()
                except OSError:
                    return
                time.sleep(0.05)
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def receiving_mail() -> Iterator[tuple[int, list[tuple[str, str]]]]:
    """Serve SMTP within the block: yield the port, and the mail that is received, each to whom and its text."""
    mail: list[tuple[str, str]] = []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            to = ""
            self.say("220 ready")
            while line := self.rfile.readline().decode().strip():
                match line.split(":")[0].split()[0].upper():
                    case "EHLO":
                        self.say("250 here")
                    case "RCPT":
                        to = f"{to},{line.partition(':')[2].strip('<> ')}".strip(",")
                        self.say("250 taken")
                    case "DATA":
                        self.say("354 go on")
                        lines = iter(self.rfile.readline, b".\r\n")
                        message = email.message_from_bytes(b"".join(lines), policy=email.policy.default)
                        body = message.get_body(["plain"])
                        mail.append((to, body.get_content() if body is not None else ""))
                        to = ""
                        self.say("250 taken")
                    case "QUIT":
                        self.say("221 bye")
                        return
                    case _:
                        self.say("250 well")

        def say(self, text: str) -> None:
            self.wfile.write(f"{text}\r\n".encode())

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server.server_address[1], mail
        finally:
            server.shutdown()
            thread.join()
