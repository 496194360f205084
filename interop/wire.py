"""Two plain JSON-RPC clients: one runs an MCP server, the other connects to Toolbelt. Both return messages as sent.

No MCP library reads the messages, so that nothing is filled in or left out before they are compared.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import kit

REVISION = "2025-11-25"
# Longer than any call here takes.
TIMEOUT = 150
# The variables that the official Python client, through which Toolbelt runs servers, passes to a server's process.
INHERITED = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")

_HANDSHAKE: Mapping[str, Any] = {
    "protocolVersion": REVISION,
    "capabilities": {},
    "clientInfo": {"name": "toolbelt-interop", "version": "1"},
}


class Direct:
    """A server's process and a connection to it over its standard input and output."""

    def __init__(self, command: Sequence[str], cwd: Path, env: Mapping[str, str]) -> None:
        inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=cwd,
            env={**inherited, **env},
        )
        self._last_id = 0

    def __enter__(self) -> Self:
        self.server = self.request("initialize", _HANDSHAKE)["result"]["serverInfo"]
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request and return the response. Requests by the server are refused."""
        self._last_id += 1
        self._send({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
        assert self._process.stdout is not None
        # A server that does not respond is killed, which ends its output.
        limit = threading.Timer(TIMEOUT, self._process.kill)
        limit.start()
        try:
            return self._read_response(self._process.stdout)
        finally:
            limit.cancel()

    def _read_response(self, lines: Iterable[bytes]) -> dict[str, Any]:
        for line in lines:
            message: dict[str, Any] = json.loads(line)
            if "method" not in message and message.get("id") == self._last_id:
                return message
            if "method" in message and "id" in message:
                refusal = {"code": -32601, "message": "Method not found"}
                self._send({"jsonrpc": "2.0", "id": message["id"], "error": refusal})
        raise EOFError("the server has ended, or did not respond")

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()


class Through:
    """The MCP endpoint of an agent at Toolbelt, in one session."""

    def __init__(self, agent: str, token: str) -> None:
        self._agent, self._token = agent, token
        self._address = f"{kit.ADDRESS}/mcp/{agent}/s/{kit.session()}"
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": REVISION,
        }
        self._last_id = 0

    def __enter__(self) -> Self:
        self.request("initialize", _HANDSHAKE)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Do nothing: Toolbelt keeps no connection for a client of this revision."""

    def in_another_session(self) -> Through:
        """Return a connection of the same agent in another session."""
        return Through(self._agent, self._token)

    def request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request and return the response, which is JSON or the last message of a stream."""
        self._last_id += 1
        body = json.dumps({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
        post = urllib.request.Request(self._address, body.encode(), self._headers)
        with urllib.request.urlopen(post, timeout=TIMEOUT) as response:
            if (session := response.headers.get("Mcp-Session-Id")) is not None:
                self._headers["Mcp-Session-Id"] = session
            text = response.read().decode()
            is_stream = response.headers.get_content_type() == "text/event-stream"
        events = [line[5:] for line in text.splitlines() if line.startswith("data:")] if is_stream else [text]
        messages = [json.loads(event) for event in events if event.strip()]
        return next(message for message in messages if message.get("id") == self._last_id)
