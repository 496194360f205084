"""What goes into a request of Anthropic's Messages? ``client.messages.create(**rendered)``

Anthropic has no choice among some of the tools: a first step that focuses on some is sent only these.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from toolbelt.adapters import surface
from toolbelt.adapters.json_schema import forms, words

# Held against the properties at the top alone; deeper ones may be named as they like.
_PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")


def _input_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Say a schema as Anthropic takes it, which wants no choices at the top, and plain names there."""
    said = forms.rooted(schema, words.COMBINING)
    foreign = sorted(name for name in said["properties"] if not _PROPERTY.fullmatch(name))
    if foreign:
        raise words.Inexpressible(
            f"it has properties whose names do not match {_PROPERTY.pattern} ({', '.join(foreign)})"
        )
    return said


LIMITS = surface.Limits(provider="Anthropic", names=re.compile(r"[a-zA-Z0-9_-]{1,128}"), say=_input_schema)


def render(document: Mapping[str, Any], mode: str = "rewrite") -> dict[str, Any]:
    """Give ``system`` (the policy, as a block of text), ``tools``, ``tool_choice``; ``first_step`` replaces some.

    What there is nothing to say of is left out: Anthropic refuses blank text, and a choice without tools. Raises
    errors.Invalid for an unknown mode, errors.ProviderLimit for what Anthropic does not take.
    """
    asked = surface.read(document, mode)
    schemas = surface.check(asked, LIMITS)
    tools = [
        {"name": tool["name"], **surface.described(tool), "input_schema": schemas[tool["name"]]}
        for tool in asked.tools
    ]
    said: dict[str, Any] = {}
    if asked.policy:
        said["system"] = [{"type": "text", "text": asked.policy}]
    if tools:
        said["tools"] = tools
        said["tool_choice"] = {"type": "auto" if asked.may_call else "none"}
    if asked.first_step:
        said["first_step"] = _first(asked.first_step, tools)
    return said


def _first(step: surface.FirstStep, tools: list[dict[str, Any]]) -> dict[str, Any]:
    if step.one:
        return {"tool_choice": {"type": "tool", "name": step.one}}
    said: dict[str, Any] = {"tool_choice": {"type": "any" if step.required else "auto"}}
    if step.narrows:
        said["tools"] = [tool for tool in tools if tool["name"] in step.names]
    return said
