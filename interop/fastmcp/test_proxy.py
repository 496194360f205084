"""Tests FastMCP's proxy in front of Toolbelt and behind it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import gateways

PROGRAM = [sys.executable, str(Path(__file__).with_name("proxying.py"))]


class TestProxy(gateways.Checks):
    name = "fastmcp"
    # It speaks the newer revision only if the server does, and else lists nothing.
    options = ("--revision", "2025-11-25")
    # For 300 seconds.
    keeps_its_list = True

    def to_toolbelt(self, address: str, token: str) -> Sequence[str]:
        return [*PROGRAM, "url", address, token]

    def to_server(self, command: Sequence[str], port: int, transport: str) -> Sequence[str]:
        return [*PROGRAM, "command", str(port), transport, *command]
