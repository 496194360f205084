"""Tests that Toolbelt reaches a server built with the official SDK again after it was restarted."""

from __future__ import annotations

import restarts


class TestRestarts(restarts.Checks):
    library = "mcp2"
