"""Tests the login of Claude Code's command line."""

from __future__ import annotations

from collections.abc import Sequence

import logins


class TestClaudeCode(logins.Checks):
    # It connects, and needs no account for that.
    shown, is_connected = "Claude Code (toolbelt)", "Connected"

    def program(self) -> Sequence[str]:
        # Its package would copy this program in a script of the installation, which does not run here.
        (program,) = logins.NODE_PACKAGES.glob("@anthropic-ai/claude-code-*/claude")
        return [str(program)]

    def add(self, address: str) -> Sequence[str]:
        return ["mcp", "add", "--transport", "http", logins.NAME, address]
