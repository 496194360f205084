"""Rendering of surfaces as parameters of model providers' SDKs. (docs/reference/formats.md)

There is one module per format; ``render`` gives access to all of them. They are pure and only use the standard library:
they convert a surface's JSON document to parameters of the provider's SDK. To add a format, add a module, and its name
to the table here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

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


class Format(Protocol):
    """What the module of a format has: what its provider accepts of a tool, the parameters for a surface, and what a
    first step changes in them.
    """

    @property
    def LIMITS(self) -> surface.Limits: ...

    def render(self, document: Document, mode: str, profile: profiles.Profile) -> dict[str, Any]: ...

    def first_step(self, step: surface.FirstStep, profile: profiles.Profile) -> dict[str, Any]: ...


MODULES: Mapping[str, Format] = {
    "anthropic": anthropic,
    "bedrock": bedrock,
    "gemini": gemini,
    "mcp": mcp,
    "mistral": mistral,
    "openai_chat": openai_chat,
    "openai_responses": openai_responses,
    "vercel": vercel,
}
FORMATS = tuple(MODULES)

# What a tool is examined for before there is a request. The provider behind Vercel's SDK is one of the others.
_PROVIDERS = (
    *((module.LIMITS, profiles.UNKNOWN) for form, module in MODULES.items() if form != "vercel"),
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
    if form not in MODULES:
        formats = ", ".join(FORMATS)
        problem = errors.Problem(path="format", message=f"Unknown format {form!r}. Use one of {formats}.")
        raise errors.Invalid([problem])
    return MODULES[form].render(document, mode, profile or profiles.of(model, form))


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
