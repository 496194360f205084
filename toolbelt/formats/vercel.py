"""Parameters for Vercel's AI SDK: ``generateText``, ``streamText``, or ``prepareStep`` for the first step.

The SDK requires each tool to be wrapped (``dynamicTool`` and ``jsonSchema``), which only the caller's code can do. The
provider behind the SDK is unknown here, so schemas stay unchanged; and because some providers lose their cache and the
thinking that they preserve if tools or instructions change, every step has the same, and a focus is a message.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from toolbelt.formats import profiles, surface

LIMITS = surface.Limits(provider="Vercel's AI SDK", names=re.compile(r".+"), convert=dict)


def render(
    document: Mapping[str, Any], mode: str = "rewrite", profile: profiles.Profile = profiles.UNKNOWN
) -> dict[str, Any]:
    """Return ``activeTools``, ``toolChoice``, ``instructions`` (the policy) and ``tools`` by name, to be wrapped.

    ``first_step`` is what changes in the first one. Raise errors.Invalid for an unknown mode.
    """
    content = surface.read(document, mode)
    schemas = surface.check(content, LIMITS, profile)
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
        rendered["first_step"] = first_step(content.first_step, profile)
    return rendered


def first_step(step: surface.FirstStep, profile: profiles.Profile) -> dict[str, Any]:
    """Return what a first step changes in a request."""
    rendered: dict[str, Any] = {}
    if is_forced := step.required and profile.can_be_forced():
        only_tool = {"type": "tool", "toolName": step.only_tool}
        rendered["toolChoice"] = only_tool if step.only_tool else "required"
    if text := step.text(is_forced=is_forced):
        rendered["messages"] = [{"role": "user", "content": text}]
    return rendered
