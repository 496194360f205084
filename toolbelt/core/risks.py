"""What can calling this tool do? Its annotations, in one word. (MCP: tool annotations; dashboard: risk badge)"""

from __future__ import annotations

from typing import Literal

from toolbelt.core import catalog, schema

Risk = Literal["read-only", "writes", "destructive"]


def of(tool: catalog.Tool) -> Risk:
    """Say the tool's risk. One that says nothing of itself counts as destructive, as MCP's defaults have it."""
    hints = schema.mapping(tool.annotations, {})
    if hints.get("readOnlyHint") is True:
        return "read-only"
    return "writes" if hints.get("destructiveHint") is False else "destructive"
