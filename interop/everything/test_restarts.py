"""Tests that Toolbelt reconnects to a published server, built with the TypeScript SDK, after a restart."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import restarts

PROGRAM = Path(sys.prefix) / "node/node_modules/.bin/mcp-server-everything"


class TestRestarts(restarts.Checks):
    library, tool, arguments = "typescript", "echo", {"message": "here"}

    def command(self, port: int) -> Sequence[str]:
        return [str(PROGRAM), "streamableHttp"]
