"""Tools as a server lists them, in MCP's words."""

from __future__ import annotations

from typing import Any


def tool(
    name: str, description: str = "", properties: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    return {
        "name": name,
        "description": description,
        "inputSchema": {"type": "object", "properties": properties or {}},
        **more,
    }
