"""Tests that Toolbelt reaches a server built with FastMCP again after it was restarted."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import restarts


class TestRestarts(restarts.Checks):
    key = "restarted-fastmcp"

    def command(self, port: int) -> Sequence[str]:
        return [sys.executable, str(Path(__file__).with_name("counting.py")), str(port)]
