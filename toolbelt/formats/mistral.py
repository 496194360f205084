"""Parameters for Mistral: ``client.chat.complete(**rendered)``

Mistral cannot restrict the choice to some of the tools: a focus is a message, and every step has the same tools.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from toolbelt.formats import openai_chat, profiles, surface
from toolbelt.formats.json_schema import forms


def _parameters(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema as an object with properties."""
    return forms.to_object(schema, ())


LIMITS = surface.Limits(provider="Mistral", names=re.compile(r"[a-zA-Z0-9_-]{1,64}"), convert=_parameters)


def render(
    document: Mapping[str, Any],
    mode: str = "rewrite",
    profile: profiles.Profile = profiles.FORMATS["mistral"],
) -> dict[str, Any]:
    """Return ``messages`` (the policy, as a system message), ``tools`` and ``tool_choice``, and what ``first_step``
    changes.

    Empty parts are left out. Raise errors.Invalid for an unknown mode, or errors.ProviderLimit for what Mistral does
    not accept.
    """
    content = surface.read(document, mode)
    schemas = surface.check(content, LIMITS, profile)
    rendered = openai_chat.parameters(content, schemas)
    if content.first_step:
        rendered["first_step"] = first_step(content.first_step, profile)
    return rendered


def first_step(step: surface.FirstStep, profile: profiles.Profile) -> dict[str, Any]:
    """Return what a first step changes in a request."""
    rendered: dict[str, Any] = {}
    if is_forced := step.required and profile.can_be_forced():
        only_tool = {"type": "function", "function": {"name": step.only_tool}}
        rendered["tool_choice"] = only_tool if step.only_tool else "any"
    if text := step.text(is_forced=is_forced):
        rendered["messages"] = [{"role": "user", "content": text}]
    return rendered
