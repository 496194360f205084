"""The checks of an MCP server over HTTP that is restarted. A part defines how to start the server."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import kit
import pytest

SECONDS_TO_START = 60


class Program:
    """A server process that always uses the same port."""

    def __init__(self, checks: Checks) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self._checks = checks
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/mcp"

    def start(self) -> None:
        """Start the server, and wait until it listens."""
        self._process = subprocess.Popen(
            self._checks.command(self._port),
            env={**os.environ, "PORT": str(self._port)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        end = time.monotonic() + SECONDS_TO_START
        while True:
            try:
                socket.create_connection(("127.0.0.1", self._port), 1).close()
                return
            except OSError:
                assert self._process.poll() is None, "the server has ended"
                assert time.monotonic() < end, "the server does not listen"
                time.sleep(0.05)

    def kill(self) -> None:
        """Kill the server, so that it loses its sessions without ending them."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)


class Checks:
    """The checks of a server built with ``library``, whose ``tool`` is called with ``arguments``."""

    library: str
    tool: str = "count"
    arguments: Mapping[str, Any] = {}

    @property
    def key(self) -> str:
        """The name of the plugin, its namespace, its loadout and its agent."""
        return f"restarted-{self.library}"

    def command(self, port: int) -> Sequence[str]:
        """Return the command that serves at ``/mcp`` on the port, which is also in the variable ``PORT``."""
        return [sys.executable, str(Path(__file__).with_name("counting.py")), self.library, str(port)]

    @pytest.fixture(scope="class")
    @classmethod
    def program(cls) -> Iterator[Program]:
        """Run the server, and add it to Toolbelt."""
        checks = cls()
        key = checks.key
        program = Program(checks)
        program.start()
        try:
            kit.manage("mcp", "add", key, "--namespace", key, "--trust", "--url", program.url)
            kit.manage("mcp", "refresh", key)
            loadouts = [{"name": key, "plugins": [key]}]
            agents = [{"key": key, "title": key, "loadout": key}]
            kit.operator("PUT", "belt", {"loadouts": loadouts, "agents": agents})
            yield program
            kit.operator("PATCH", f"plugins/{key}", {"changes": {"active": False}, "confirm": True})
        finally:
            program.kill()

    @pytest.fixture(scope="class")
    @classmethod
    def token(cls, program: Program) -> str:
        return str(kit.operator("POST", "tokens", {"agent": cls().key})["text"])

    def test_a_restarted_server_answers_the_next_call(self, program: Program, token: str) -> None:
        sessions = [kit.session() for _ in range(3)]
        for session in sessions:
            assert not self._call(token, session)["is_error"]
        for _ in range(2):
            program.kill()
            program.start()
            for session in sessions:
                result = self._call(token, session)
                assert not result["is_error"], result

    def test_an_unreachable_server_is_reported_and_a_refresh_by_another_process_ends_the_pause(
        self, program: Program, token: str
    ) -> None:
        session = kit.session()
        assert not self._call(token, session)["is_error"]
        program.kill()
        assert self._call(token, session)["is_error"]
        assert kit.operator("GET", f"plugins/{self.key}/status")["reason"]
        program.start()
        kit.manage("mcp", "refresh", self.key)
        result = self._call(token, session)
        assert not result["is_error"], result
        assert not kit.operator("GET", f"plugins/{self.key}/status")["reason"]

    def _call(self, token: str, session: str) -> dict[str, Any]:
        body = {"tool": f"{self.key}__{self.tool}", "arguments": self.arguments, "session": session}
        request = urllib.request.Request(
            f"{kit.ADDRESS}/api/v1/agents/{self.key}/calls",
            data=json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            result: dict[str, Any] = json.load(response)
        return result
