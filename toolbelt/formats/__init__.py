"""Rendering of surfaces as parameters of model providers' SDKs. (docs/reference/formats.md)

There is one module per format; ``render`` gives access to all of them. They are pure and only use the standard library:
they convert a surface's JSON document to parameters of the provider's SDK. To add a format, add a module, and its name
to the table here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from toolbelt.core import errors, schema_drafts
from toolbelt.formats import (
    anthropic,
    bedrock,
    gemini,
    mcp,
    mistral,
    openai_chat,
    openai_responses,
    profiles,
    surface,
    vercel,
)
from toolbelt.formats.json_schema import patterns

Document = Mapping[str, Any]

_RENDERERS: Mapping[str, Callable[[Document, str, profiles.Profile], dict[str, Any]]] = {
    "anthropic": anthropic.render,
    "bedrock": bedrock.render,
    "gemini": gemini.render,
    "mcp": mcp.render,
    "mistral": mistral.render,
    "openai_chat": openai_chat.render,
    "openai_responses": openai_responses.render,
    "vercel": vercel.render,
}
FORMATS = tuple(_RENDERERS)

# What a tool is examined for before there is a request.
_PROVIDERS = (
    *(
        (module.LIMITS, profiles.UNKNOWN)
        for module in (anthropic, bedrock, gemini, mcp, mistral, openai_chat, openai_responses)
    ),
    (openai_chat.LIMITS, profiles.of("azure/")),
)
# How many patterns are named.
_MAX_SHOWN = 3


def render(
    form: str,
    document: Document,
    mode: str = "rewrite",
    *,
    model: str = "",
    profile: profiles.Profile | None = None,
) -> dict[str, Any]:
    """Return a surface's JSON document in the format named ``form``, for the ``model`` with this name, or with this
    ``profile``.

    Raise errors.Invalid for an unknown format or mode, or errors.ProviderLimit for what the provider does not accept.
    """
    if form not in _RENDERERS:
        formats = ", ".join(FORMATS)
        problem = errors.Problem(path="format", message=f"Unknown format {form!r}. Use one of {formats}.")
        raise errors.Invalid([problem])
    return _RENDERERS[form](document, mode, profile or profiles.of(model, form))


def objections(tool: Document) -> tuple[str, ...]:
    """Return what providers of models would refuse of a tool, as a surface has it, and what they are not sent."""
    found = [
        refusal
        for limits, profile in _PROVIDERS
        for refusal in surface.fit(tool, limits, profile)[1].values()
    ]
    try:
        left_out = patterns.of(schema_drafts.current(tool["input_schema"]))
    except RecursionError:
        left_out = []
    if left_out:
        shown = ", ".join(patterns.cut(pattern) for pattern in left_out[:_MAX_SHOWN])
        found.append(f"Its description has the pattern instead, because some providers refuse it: {shown}")
    # Azure refuses what OpenAI refuses.
    return tuple(dict.fromkeys(found))
