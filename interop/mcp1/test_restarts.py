"""Tests that Toolbelt reconnects to a server built with the official SDK's 1.x line after a restart."""

from __future__ import annotations

import restarts


class TestRestarts(restarts.Checks):
    library = "mcp1"
