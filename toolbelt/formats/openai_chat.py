"""Parameters for OpenAI's Chat Completions: ``client.chat.completions.create(**rendered)``

``tools`` stays the same in all steps of a request, so that it can be read from the prompt cache. A first step with a
focus narrows ``tool_choice`` if the model is one of OpenAI's. Other providers have this form, too, and refuse or ignore
what they do not know: their models read the focus in the conversation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from toolbelt.formats import profiles, surface
from toolbelt.formats.json_schema import forms, keywords


def _parameters(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema as OpenAI accepts it: no choices at the top level, and ``items`` in each array."""
    return forms.with_items(forms.to_object(schema, keywords.BEYOND_PROPERTIES))


LIMITS = surface.Limits(
    provider="OpenAI's Chat Completions",
    names=re.compile(r"[a-zA-Z0-9_-]{1,64}"),
    max_tools=128,
    convert=_parameters,
)


def render(
    document: Mapping[str, Any], mode: str = "rewrite", profile: profiles.Profile = profiles.UNKNOWN
) -> dict[str, Any]:
    """Return ``messages`` (the policy, as a system message), ``tools`` and ``tool_choice``, and what ``first_step``
    changes.

    Empty parts are left out, because OpenAI rejects an empty list of tools, and a choice without tools. Raise
    errors.Invalid for an unknown mode, or errors.ProviderLimit for what OpenAI does not accept.
    """
    content = surface.read(document, mode)
    schemas = surface.check(content, LIMITS, profile)
    rendered = parameters(content, schemas)
    if content.first_step:
        rendered["first_step"] = first_step(content.first_step, profile)
    return rendered


def parameters(content: surface.Surface, schemas: Mapping[str, Any]) -> dict[str, Any]:
    """Return the policy, the tools and the choice among them, without a first step. Mistral takes the same."""
    rendered: dict[str, Any] = {}
    if content.policy:
        rendered["messages"] = [{"role": "system", "content": content.policy}]
    if content.tools:
        rendered["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool["name"],
                    **surface.description(tool),
                    "parameters": schemas[tool["name"]],
                },
            }
            for tool in content.tools
        ]
        rendered["tool_choice"] = "auto" if content.may_call else "none"
    return rendered


def first_step(step: surface.FirstStep, profile: profiles.Profile) -> dict[str, Any]:
    """Return what a first step changes in a request."""
    return surface.openai_step(step, profile, _choice_of, allowed)


def allowed(step: surface.FirstStep) -> dict[str, Any]:
    """Return the tool choice that restricts one of OpenAI's models to the tools of a first step."""
    mode = "required" if step.required else "auto"
    tools = [_choice_of(name) for name in step.names]
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}}


def _choice_of(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}
