"""What can calling this tool do? Its annotations, in one word. (MCP: tool annotations; dashboard: risk badge)"""

from __future__ import annotations

import functools
from typing import Literal

from toolbelt.core import catalog, schema

Risk = Literal["read-only", "writes", "destructive"]


def of(tool: catalog.Tool) -> Risk:
    """Say the tool's risk. One that says nothing of itself counts as destructive, as MCP's defaults have it."""
    return _of_annotations(tool.annotations)


@functools.lru_cache(maxsize=256)  # many tools say the same of themselves
def _of_annotations(annotations: str) -> Risk:
    hints = schema.mapping(annotations, {})
    if hints.get("readOnlyHint") is True:
        return "read-only"
    return "writes" if hints.get("destructiveHint") is False else "destructive"
