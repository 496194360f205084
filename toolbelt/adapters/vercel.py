"""What goes into a call of Vercel's AI SDK? ``generateText``, ``streamText``, or ``prepareStep`` for the first step.

The SDK wants each tool wrapped (``dynamicTool`` and ``jsonSchema``), which only the caller's own code can do. Which
provider comes behind it is not known here, so schemas stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from toolbelt.adapters import surface

LIMITS = surface.Limits(provider="Vercel's AI SDK", names=re.compile(r".+"), say=dict)


def render(document: Mapping[str, Any], mode: str = "rewrite") -> dict[str, Any]:
    """Give ``activeTools``, ``toolChoice``, ``instructions`` (the policy), and ``tools`` by name, to be wrapped.

    ``first_step`` replaces some of them. Raises errors.Invalid for an unknown mode.
    """
    asked = surface.read(document, mode)
    schemas = surface.check(asked, LIMITS)
    said: dict[str, Any] = {
        "activeTools": list(asked.names),
        "toolChoice": "auto" if asked.may_call else "none",
        "tools": {
            tool["name"]: {**surface.described(tool), "inputSchema": schemas[tool["name"]]}
            for tool in asked.tools
        },
    }
    if asked.policy:
        said["instructions"] = asked.policy
    if asked.first_step:
        said["first_step"] = _first(asked.first_step)
    return said


def _first(step: surface.FirstStep) -> dict[str, Any]:
    if step.one:
        return {"activeTools": [step.one], "toolChoice": {"type": "tool", "toolName": step.one}}
    return {"activeTools": list(step.names), "toolChoice": "required" if step.required else "auto"}
