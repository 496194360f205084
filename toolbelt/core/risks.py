"""The risk of calling a tool, from its annotations (MCP: tool annotations; dashboard: risk badge)."""

from __future__ import annotations

import functools
from typing import Literal

from toolbelt.core import catalog, schema

Risk = Literal["read-only", "writes", "destructive"]


def of(tool: catalog.Tool) -> Risk:
    """Return the tool's risk. A tool without annotations counts as destructive, which is MCP's default.

    Prompts, resources and other entries are only read.
    """
    if tool.kind != "tool":
        return "read-only"
    return _of_annotations(tool.annotations)


@functools.lru_cache(maxsize=256)  # many tools have the same annotations
def _of_annotations(annotations: str) -> Risk:
    hints = schema.mapping(annotations, {})
    if hints.get("readOnlyHint") is True:
        return "read-only"
    return "writes" if hints.get("destructiveHint") is False else "destructive"
