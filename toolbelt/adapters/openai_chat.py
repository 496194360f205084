"""What goes into a request of OpenAI's Chat Completions? ``client.chat.completions.create(**rendered)``

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
    provider="OpenAI's Chat Completions",
    names=re.compile(r"[a-zA-Z0-9_-]{1,64}"),
    most_tools=128,
    say=_parameters,
)


def render(document: Mapping[str, Any], mode: str = "rewrite") -> dict[str, Any]:
    """Give ``messages`` (the policy, as a system message), ``tools``, ``tool_choice``; ``first_step`` replaces some.

    What there is nothing to say of is left out: OpenAI refuses an empty list of tools, and a choice without tools.
    Raises errors.Invalid for an unknown mode, errors.ProviderLimit for what OpenAI does not take.
    """
    asked = surface.read(document, mode)
    schemas = surface.check(asked, LIMITS)
    said: dict[str, Any] = {}
    if asked.policy:
        said["messages"] = [{"role": "system", "content": asked.policy}]
    if asked.tools:
        said["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool["name"],
                    **surface.described(tool),
                    "parameters": schemas[tool["name"]],
                },
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
    return {
        "type": "allowed_tools",
        "allowed_tools": {"mode": mode, "tools": [_named(name) for name in step.names]},
    }


def _named(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}
