"""How are MCP clients configured for one agent? Each in its own form, with the token from where it is kept."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import Any

from toolbelt.web.presenters import settings

# What the clients call this server; its tools are named after it there.
NAME = "toolbelt"


def address(origin: str, agent: str) -> str:
    """Give the agent's address for MCP clients."""
    return f"{origin}/mcp/{agent}"


def snippets(origin: str, agent: str) -> Iterator[settings.Snippet]:
    """Write the configuration of each client; ``origin`` is this installation's, as the browser reaches it."""
    url = address(origin, agent)
    yield settings.Snippet(
        id="snippet-claude-code",
        label="Claude Code",
        text=(
            f"claude mcp add --transport http {NAME} {shlex.quote(url)} \\\n"
            '  --header "Authorization: Bearer $TOOLBELT_TOKEN"\n'
        ),
    )
    yield settings.Snippet(
        id="snippet-cursor",
        label="Cursor",
        text="// .cursor/mcp.json, or ~/.cursor/mcp.json\n"
        + _json({"mcpServers": {NAME: {"url": url, **_headers("${env:TOOLBELT_TOKEN}")}}}),
    )
    asked = {
        "type": "promptString",
        "id": "toolbelt-token",
        "description": f"Token of the agent {agent}",
        "password": True,
    }
    server = {"type": "http", "url": url, **_headers("${input:toolbelt-token}")}
    yield settings.Snippet(
        id="snippet-vs-code",
        label="VS Code",
        text="// .vscode/mcp.json\n" + _json({"inputs": [asked], "servers": {NAME: server}}),
    )
    yield settings.Snippet(
        id="snippet-codex",
        label="Codex",
        text=(
            "# ~/.codex/config.toml\n"
            f"[mcp_servers.{NAME}]\n"
            f"url = {json.dumps(url)}\n"
            'bearer_token_env_var = "TOOLBELT_TOKEN"\n'
        ),
    )


def _headers(token: str) -> dict[str, Any]:
    return {"headers": {"Authorization": f"Bearer {token}"}}


def _json(value: Any) -> str:
    return json.dumps(value, indent=2) + "\n"
