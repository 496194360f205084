"""Surfaces as JSON documents, made from little, and from the real catalogs of the demo."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toolbelt.core import keys

CATALOGS = Path(__file__).resolve().parent.parent.parent / "fixtures/demo/catalogs"

Document = dict[str, Any]


def tool(name: str, **fields: Any) -> Document:
    """Make one tool as it stands in a surface."""
    schema = {"type": "object", "properties": {}}
    made = {"name": name, "description": f"Does {name}.", "input_schema": schema, "annotations": {}}
    return {**made, "toolkits": [], "tokens": 1, **fields}


def document(*tools: str | Document, policy: str = "", **fields: Any) -> Document:
    """Make what a renderer reads of a surface."""
    made = [tool(one) if isinstance(one, str) else one for one in tools]
    said = {"tools": made, "tool_choice": "auto" if made else "none", "directive": None}
    return {**said, "policy": {"text": policy, "sections": []}, **fields}


def focus(*names: str, required: bool = False) -> Document:
    """Make a directive."""
    choice = "required" if required else "auto"
    return {"active_tools": list(names), "tool_choice": choice, "first_step_only": True}


def taking(**schema: Any) -> Document:
    """Make a surface of one tool, ``it``, with this schema."""
    return document(tool("it", input_schema=schema))


@functools.cache
def real() -> tuple[Document, ...]:
    """Return every tool of every real catalog, as it stands in a surface."""
    return tuple(
        _real(file.stem, listed)
        for file in sorted(CATALOGS.glob("*.json"))
        for listed in json.loads(file.read_text(encoding="utf-8"))["tools"]
    )


def _real(namespace: str, listed: Mapping[str, Any]) -> Document:
    fields = {"title": listed.get("title"), "output_schema": listed.get("outputSchema")}
    return tool(
        keys.fit(listed["name"], namespace),
        description=listed.get("description", ""),
        input_schema=listed["inputSchema"],
        annotations=listed.get("annotations", {}),
        toolkits=[namespace],
        **{name: value for name, value in fields.items() if value},
    )
