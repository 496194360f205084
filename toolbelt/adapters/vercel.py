"""Parameters for Vercel's AI SDK: ``generateText``, ``streamText``, or ``prepareStep`` for the first step.

The SDK requires each tool to be wrapped (``dynamicTool`` and ``jsonSchema``), which only the caller's code can do. The
provider behind the SDK is unknown here, so schemas stay unchanged; and because some providers lose their cache and the
thinking that they preserve if tools are left out, every step has all definitions, and a focus is stated as text.
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
        rendered["first_step"] = _first(content.first_step, content.policy)
    return rendered


def _first(step: surface.FirstStep, policy: str) -> dict[str, Any]:
    if step.only_tool:
        return {"toolChoice": {"type": "tool", "toolName": step.only_tool}}
    rendered: dict[str, Any] = {"toolChoice": "required" if step.required else "auto"}
    if step.narrows:
        # ``prepareStep`` has had this name for the instructions in all of the SDK's versions.
        rendered["system"] = step.policy(policy)
    return rendered
