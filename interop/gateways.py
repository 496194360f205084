"""The checks of other gateways: in front of Toolbelt, as its client, and behind it, before a published server.

A part derives a class from :class:`Checks`, and defines the gateway's commands. Its package.json has the server.
"""

from __future__ import annotations

import abc
import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import kit
import mcp_checks
import published
import pytest
import wire
from comparing import Call, Server

SECONDS_TO_START = 60
COMMAND = [str(published.NODE_PACKAGES / ".bin/mcp-server-everything")]
CALLS = [
    Call(tool="echo", arguments={"message": "Hello, wörld ✓"}),
    Call(tool="get-sum", arguments={"a": 2, "b": 3.5}),
    Call(tool="get-sum", arguments={"a": "two"}),
    Call(tool="get-structured-content", arguments={"location": "New York"}),
    Call(tool="get-annotated-message", arguments={"messageType": "error", "includeImage": True}),
    Call(tool="get-resource-links", arguments={"count": 2}),
    Call(tool="get-tiny-image"),
    Call(tool="trigger-long-running-operation", arguments={"duration": 0.2, "steps": 2}),
]
PROMPTS = {"simple-prompt": {}, "args-prompt": {"city": "Köln"}}


class Checks(abc.ABC):
    """The checks of a gateway. ``behind`` are the paths at which it serves, by the transport's name."""

    name: str
    behind: Mapping[str, str] = {"http": "/mcp", "sse": "/sse"}
    # More options of ``mcp add`` for the gateway behind Toolbelt.
    options: Sequence[str] = ()
    # Whether the gateway learns only later that a tool is back.
    keeps_its_list = False

    @abc.abstractmethod
    def to_toolbelt(self, address: str, token: str) -> Sequence[str]:
        """Return the command of the gateway that serves an agent's endpoint over stdio."""

    @abc.abstractmethod
    def to_server(self, command: Sequence[str], port: int, transport: str) -> Sequence[str]:
        """Return the command of the gateway that serves a server's command at a port."""

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run the tests that have a transport with each."""
        if "transport" in metafunc.fixturenames:
            metafunc.parametrize("transport", type(self).behind)

    @pytest.fixture
    def in_front(self, tmp_path: Path) -> Iterator[wire.Direct]:
        """Connect to the agent ``desk`` through the gateway."""
        command = self.to_toolbelt(mcp_checks.address(kit.AGENT, kit.session()), kit.TOKEN)
        with wire.Direct(command, tmp_path, {}) as side:
            yield side

    def test_the_gateway_in_front_lists_and_calls_what_the_agent_may(self, in_front: wire.Direct) -> None:
        with wire.Through(kit.AGENT, kit.TOKEN) as side:
            assert _tools(in_front) == _tools(side)
            for call in (("desk__add", {"a": 2, "b": 40}), ("desk__fail", {"because": "rain"})):
                assert _result(in_front, *call) == _result(side, *call)

    def test_the_gateway_in_front_passes_a_flip_on(self, in_front: wire.Direct) -> None:
        add = ("desk__add", {"a": 2, "b": 40})
        assert not _result(in_front, *add)["isError"]
        with kit.switched("arithmetic", False):
            refused = _result(in_front, *add)
            assert refused["isError"]
            assert "There is no tool named 'desk__add'" in mcp_checks.text(refused)
            assert "desk__add" not in _tools(in_front)
        assert _result(in_front, *add)["isError"] == self.keeps_its_list

    def test_a_server_behind_the_gateway_answers_the_same(self, transport: str) -> None:
        @contextlib.contextmanager
        def running() -> Iterator[str]:
            port = _free_port()
            process = subprocess.Popen(
                self.to_server(COMMAND, port, transport),
                env=os.environ,
                cwd=published.WORK,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            try:
                _wait_until_listening(process, port)
                yield f"http://127.0.0.1:{port}{self.behind[transport]}"
            finally:
                os.killpg(process.pid, 15)
                process.wait(10)

        published.compare(
            Server(
                name=f"{self.name}-{transport}",
                package="@modelcontextprotocol/server-everything",
                command=COMMAND,
                calls=CALLS,
                prompts=PROMPTS,
                normalised={
                    "numbers, which a gateway in Python writes anew": (r'"priority": 1\.0', '"priority": 1')
                },
                unlisted={"simulate-research-query": "runs as a task only"},
            ),
            running,
            self.options,
        )


def _tools(side: wire.Direct | wire.Through) -> dict[str, Any]:
    """Return the fields of all tools that models read, by name."""
    tools = side.request("tools/list", {})["result"]["tools"]
    return {tool["name"]: (tool["description"], tool["inputSchema"]) for tool in tools}


def _result(side: wire.Direct | wire.Through, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    response = side.request("tools/call", {"name": tool, "arguments": arguments})
    result = response["result"]
    return {name: result.get(name) for name in ("content", "structuredContent")} | {
        "isError": result.get("isError", False)
    }


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


def _wait_until_listening(process: subprocess.Popen[bytes], port: int) -> None:
    end = time.monotonic() + SECONDS_TO_START
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert process.poll() is None, "the gateway has ended"
            assert time.monotonic() < end, "the gateway does not listen"
            time.sleep(0.05)
        else:
            return
