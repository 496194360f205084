"""What goes into a request of OpenAI's Responses? ``client.responses.create(**rendered)``

``tools`` stays the same in all steps of a request, so that it is read from the prompt's cache; a first step that
focuses on some of them narrows ``tool_choice``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from toolbelt.adapters import surface
from toolbelt.adapters.json_schema import forms, words


def _parameters(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Say a schema as OpenAI takes it, which wants no choices at the top and the items of each array."""
    return forms.with_items(forms.rooted(schema, words.BEYOND_PROPERTIES))


LIMITS = surface.Limits(
    provider="OpenAI's Responses", names=re.compile(r"[a-zA-Z0-9_-]{1,64}"), say=_parameters
)


def render(document: Mapping[str, Any], mode: str = "rewrite") -> dict[str, Any]:
    """Give ``instructions`` (the policy), ``tools``, ``tool_choice``; ``first_step`` replaces some of them.

    What there is nothing to say of is left out. ``strict`` is said to be off: left out it would be on, and a strict
    schema means something else. Raises errors.Invalid for an unknown mode, errors.ProviderLimit for what OpenAI does
    not take.
    """
    asked = surface.read(document, mode)
    schemas = surface.check(asked, LIMITS)
    said: dict[str, Any] = {}
    if asked.policy:
        said["instructions"] = asked.policy
    if asked.tools:
        said["tools"] = [
            {
                "type": "function",
                "name": tool["name"],
                **surface.described(tool),
                "parameters": schemas[tool["name"]],
                "strict": False,
            }
            for tool in asked.tools
        ]
        said["tool_choice"] = "auto" if asked.may_call else "none"
    if asked.first_step:
        said["first_step"] = {"tool_choice": _choice(asked.first_step)}
    return said


def _choice(step: surface.FirstStep) -> str | dict[str, Any]:
    if step.one:
        return _named(step.one)
    if not step.narrows:
        return "required"
    mode = "required" if step.required else "auto"
    return {"type": "allowed_tools", "mode": mode, "tools": [_named(name) for name in step.names]}


def _named(name: str) -> dict[str, Any]:
    return {"type": "function", "name": name}
