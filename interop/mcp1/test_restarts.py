"""Tests that Toolbelt reaches a server built with the official SDK's 1.x line again after it was restarted."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import restarts


class TestRestarts(restarts.Checks):
    key = "restarted-mcp1"

    def command(self, port: int) -> Sequence[str]:
        return [sys.executable, str(Path(__file__).with_name("counting.py")), str(port)]
