"""Parameters for Gemini: ``client.models.generate_content(config=rendered, ...)``

It never uses the mode AUTO, which accepts no list of names. VALIDATED leaves the model the choice whether to call, and
restricts it to the given names and schemas.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from toolbelt.formats import profiles, surface
from toolbelt.formats.json_schema import forms, keywords


def _parameters(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema as Gemini accepts it: references inlined where possible, and each const as an enum."""
    rendered = forms.with_enums(forms.inline_references(schema))
    rendered.pop("$schema", None)
    return forms.to_object(rendered, keywords.BEYOND_PROPERTIES)


LIMITS = surface.Limits(
    provider="Gemini", names=re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}"), max_tools=512, convert=_parameters
)


def render(
    document: Mapping[str, Any], mode: str = "rewrite", profile: profiles.Profile = profiles.FORMATS["gemini"]
) -> dict[str, Any]:
    """Return ``system_instruction`` (the policy), ``tools`` and ``tool_config``, and what ``first_step`` changes.

    Empty parts are left out. Raise errors.Invalid for an unknown mode, or errors.ProviderLimit for what Gemini does not
    accept.
    """
    content = surface.read(document, mode)
    schemas = surface.check(content, LIMITS, profile)
    rendered: dict[str, Any] = {}
    if content.policy:
        rendered["system_instruction"] = {"parts": [{"text": content.policy}]}
    if content.tools:
        declarations = [
            {
                "name": tool["name"],
                **surface.description(tool),
                "parameters_json_schema": schemas[tool["name"]],
            }
            for tool in content.tools
        ]
        rendered["tools"] = [{"function_declarations": declarations}]
        rendered["tool_config"] = _config("VALIDATED", content.names) if content.may_call else _config("NONE")
    if content.first_step:
        rendered["first_step"] = first_step(content.first_step, profile)
    return rendered


def first_step(step: surface.FirstStep, profile: profiles.Profile) -> dict[str, Any]:
    """Return what a first step changes in a request."""
    if not step.required:
        return {"tool_config": _config("VALIDATED", step.names)}
    if profile.can_be_forced():
        return {"tool_config": _config("ANY", step.names)}
    said = {"role": "user", "parts": [{"text": step.text(is_forced=False)}]}
    return {"tool_config": _config("VALIDATED", step.names), "messages": [said]}


def _config(mode: str, names: Sequence[str] = ()) -> dict[str, Any]:
    allowed = {"allowed_function_names": list(names)} if names else {}
    return {"function_calling_config": {"mode": mode, **allowed}}
