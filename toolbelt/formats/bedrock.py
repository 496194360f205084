"""Parameters for Amazon Bedrock's Converse: ``client.converse(**rendered, ...)``

The choice is a part of ``toolConfig``, beside the tools, and there is no choice of no tool: without one, the model
decides. A focus is a message, because a choice in one step only would be another ``toolConfig`` in that step, and only
some models accept one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from toolbelt.formats import profiles, surface
from toolbelt.formats.json_schema import forms, keywords


def _input_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema as Claude accepts it, which is stricter than others there."""
    return forms.to_object(schema, keywords.COMBINING)


LIMITS = surface.Limits(
    provider="Amazon Bedrock", names=re.compile(r"[a-zA-Z0-9_-]{1,64}"), convert=_input_schema
)


def render(
    document: Mapping[str, Any], mode: str = "rewrite", profile: profiles.Profile = profiles.UNKNOWN
) -> dict[str, Any]:
    """Return ``system`` (the policy, as text) and ``toolConfig``, and what ``first_step`` changes.

    Empty parts are left out, and so are tools that may not be called. Raise errors.Invalid for an unknown mode, or
    errors.ProviderLimit for what Bedrock does not accept.
    """
    content = surface.read(document, mode)
    schemas = surface.check(content, LIMITS, profile)
    tools = [
        {
            "toolSpec": {
                "name": tool["name"],
                **surface.description(tool),
                "inputSchema": {"json": schemas[tool["name"]]},
            }
        }
        for tool in content.tools
    ]
    rendered: dict[str, Any] = {}
    if content.policy:
        rendered["system"] = [{"text": content.policy}]
    if content.may_call:
        rendered["toolConfig"] = {"tools": tools}
    if content.first_step:
        rendered["first_step"] = first_step(content.first_step, profile)
    return rendered


def first_step(step: surface.FirstStep, profile: profiles.Profile) -> dict[str, Any]:
    """Return what a first step changes in a request."""
    return {"messages": [{"role": "user", "content": [{"text": step.text(is_forced=False)}]}]}
