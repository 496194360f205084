"""Parameters for Anthropic's Messages: ``client.messages.create(**rendered)``

Anthropic cannot restrict the choice to some of the tools. Its models' thinking is bound to the ``system`` and ``tools``
that it began with, and so is the prompt cache: every step has the same, and a focus is a message in the conversation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from toolbelt.formats import profiles, surface
from toolbelt.formats.json_schema import forms, keywords

# Anthropic checks the names of top-level properties only.
_PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")


def _input_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema as Anthropic accepts it: no choices and only plain names at the top level."""
    converted = forms.to_object(schema, keywords.COMBINING)
    foreign = sorted(name for name in converted["properties"] if not _PROPERTY.fullmatch(name))
    if foreign:
        raise keywords.UnsupportedSchemaError(
            f"it has properties whose names do not match {_PROPERTY.pattern} ({', '.join(foreign)})"
        )
    return converted


LIMITS = surface.Limits(
    provider="Anthropic", names=re.compile(r"[a-zA-Z0-9_-]{1,128}"), convert=_input_schema
)


def render(
    document: Mapping[str, Any], mode: str = "rewrite", profile: profiles.Profile = profiles.UNKNOWN
) -> dict[str, Any]:
    """Return ``system`` (the policy, as text), ``tools`` and ``tool_choice``, and what ``first_step`` changes.

    Empty parts are left out, because Anthropic rejects blank text, and a choice without tools. Raise errors.Invalid for
    an unknown mode, or errors.ProviderLimit for what Anthropic does not accept.
    """
    content = surface.read(document, mode)
    schemas = surface.check(content, LIMITS, profile)
    tools = [
        {"name": tool["name"], **surface.description(tool), "input_schema": schemas[tool["name"]]}
        for tool in content.tools
    ]
    rendered: dict[str, Any] = {}
    if content.policy:
        rendered["system"] = [{"type": "text", "text": content.policy}]
    if tools:
        rendered["tools"] = tools
        rendered["tool_choice"] = {"type": "auto" if content.may_call else "none"}
    if content.first_step:
        rendered["first_step"] = first_step(content.first_step, profile)
    return rendered


def first_step(step: surface.FirstStep, profile: profiles.Profile) -> dict[str, Any]:
    """Return what a first step changes in a request."""
    rendered: dict[str, Any] = {}
    if is_forced := step.required and profile.can_be_forced():
        only_tool = {"type": "tool", "name": step.only_tool}
        rendered["tool_choice"] = only_tool if step.only_tool else {"type": "any"}
    if text := step.text(is_forced=is_forced):
        role = "system" if profile.system_messages else "user"
        rendered["messages"] = [{"role": role, "content": [{"type": "text", "text": text}]}]
    return rendered
