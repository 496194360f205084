"""Tests that Toolbelt reconnects to a server built with FastMCP after a restart."""

from __future__ import annotations

import restarts


class TestRestarts(restarts.Checks):
    library = "fastmcp"
