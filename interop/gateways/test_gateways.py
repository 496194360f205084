"""Tests supergateway and mcp-proxy in front of Toolbelt and behind it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import gateways
from published import NODE_PACKAGES, PYTHON_PROGRAMS


class TestSupergateway(gateways.Checks):
    name = "supergateway"

    def to_toolbelt(self, address: str, token: str) -> Sequence[str]:
        command = [str(NODE_PACKAGES / ".bin/supergateway"), "--streamableHttp", address]
        return [*command, "--oauth2Bearer", token, "--logLevel", "none"]

    def to_server(self, command: Sequence[str], port: int, transport: str) -> Sequence[str]:
        program = [
            str(NODE_PACKAGES / ".bin/supergateway"),
            "--stdio",
            shlex.join(command),
            "--port",
            str(port),
        ]
        return [
            *program,
            *(["--outputTransport", "streamableHttp", "--stateful"] if transport == "http" else []),
        ]


class TestMcpProxy(gateways.Checks):
    name = "mcp-proxy"

    def to_toolbelt(self, address: str, token: str) -> Sequence[str]:
        headers = ["--headers", "Authorization", f"Bearer {token}"]
        return [str(PYTHON_PROGRAMS / "mcp-proxy"), "--transport", "streamablehttp", *headers, address]

    def to_server(self, command: Sequence[str], port: int, transport: str) -> Sequence[str]:
        return [str(PYTHON_PROGRAMS / "mcp-proxy"), "--port", str(port), "--pass-environment", "--", *command]
