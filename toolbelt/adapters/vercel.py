"""Parameters for Vercel's AI SDK: ``generateText``, ``streamText``, or ``prepareStep`` for the first step.

The SDK requires each tool to be wrapped (``dynamicTool`` and ``jsonSchema``), which only the caller's code can do. The
provider behind the SDK is unknown here, so schemas stay unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from toolbelt.adapters import surface

LIMITS = surface.Limits(provider="Vercel's AI SDK", names=re.compile(r".+"), convert=dict)


def render(document: Mapping[str, Any], mode: str = "rewrite") -> dict[str, Any]:
    """Return ``activeTools``, ``toolChoice``, ``instructions`` (the policy) and ``tools`` by name, to be wrapped.

    ``first_step`` replaces some of them. Raise errors.Invalid for an unknown mode.
    """
    content = surface.read(document, mode)
    schemas = surface.check(content, LIMITS)
    rendered: dict[str, Any] = {
        "activeTools": list(content.names),
        "toolChoice": "auto" if content.may_call else "none",
        "tools": {
            tool["name"]: {**surface.description(tool), "inputSchema": schemas[tool["name"]]}
            for tool in content.tools
        },
    }
    if content.policy:
        rendered["instructions"] = content.policy
    if content.first_step:
        rendered["first_step"] = _first(content.first_step)
    return rendered


def _first(step: surface.FirstStep) -> dict[str, Any]:
    if step.only_tool:
        return {"activeTools": [step.only_tool], "toolChoice": {"type": "tool", "toolName": step.only_tool}}
    return {"activeTools": list(step.names), "toolChoice": "required" if step.required else "auto"}
