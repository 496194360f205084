"""Tests the login of Codex's command line."""

from __future__ import annotations

from collections.abc import Sequence

import logins


class TestCodex(logins.Checks):
    # It only says that it has a token: it connects once a model runs.
    shown, is_connected = "Codex", "OAuth"

    def program(self) -> Sequence[str]:
        return [str(logins.NODE_PACKAGES / ".bin/codex")]

    def add(self, address: str) -> Sequence[str]:
        return ["mcp", "add", logins.NAME, "--url", address]
