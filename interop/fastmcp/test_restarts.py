"""Tests that Toolbelt reaches a server built with FastMCP again after it was restarted."""

from __future__ import annotations

import restarts


class TestRestarts(restarts.Checks):
    library = "fastmcp"
