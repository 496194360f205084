"""Tools as an MCP server lists them."""

from __future__ import annotations

from typing import Any


def tool(
    name: str, description: str = "", properties: dict[str, Any] | None = None, **fields: Any
) -> dict[str, Any]:
    return {
        "name": name,
        "description": description,
        "inputSchema": {"type": "object", "properties": properties or {}},
        **fields,
    }
