"""What goes into a request of Gemini? ``client.models.generate_content(config=rendered, ...)``

Never in the mode AUTO, which takes no list of names: VALIDATED leaves the model the choice whether to call, and holds
it to the names and schemas that it was given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from toolbelt.adapters import surface
from toolbelt.adapters.json_schema import forms, words


def _parameters(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Say a schema as Gemini takes it: nothing refers to what could be written out, and a const is an enum."""
    said = forms.with_enums(forms.inlined(schema))
    said.pop("$schema", None)
    return forms.rooted(said, words.BEYOND_PROPERTIES)


LIMITS = surface.Limits(
    provider="Gemini", names=re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}"), most_tools=512, say=_parameters
)


def render(document: Mapping[str, Any], mode: str = "rewrite") -> dict[str, Any]:
    """Give ``system_instruction`` (the policy), ``tools``, ``tool_config``; ``first_step`` replaces some of them.

    What there is nothing to say of is left out. Raises errors.Invalid for an unknown mode, errors.ProviderLimit for
    what Gemini does not take.
    """
    asked = surface.read(document, mode)
    schemas = surface.check(asked, LIMITS)
    said: dict[str, Any] = {}
    if asked.policy:
        said["system_instruction"] = {"parts": [{"text": asked.policy}]}
    if asked.tools:
        declarations = [
            {
                "name": tool["name"],
                **surface.described(tool),
                "parameters_json_schema": schemas[tool["name"]],
            }
            for tool in asked.tools
        ]
        said["tools"] = [{"function_declarations": declarations}]
        said["tool_config"] = _config("VALIDATED", asked.names) if asked.may_call else _config("NONE")
    if asked.first_step:
        must = "ANY" if asked.first_step.required else "VALIDATED"
        said["first_step"] = {"tool_config": _config(must, asked.first_step.names)}
    return said


def _config(mode: str, names: Sequence[str] = ()) -> dict[str, Any]:
    allowed = {"allowed_function_names": list(names)} if names else {}
    return {"function_calling_config": {"mode": mode, **allowed}}
