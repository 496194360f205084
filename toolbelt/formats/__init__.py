"""Rendering of surfaces as parameters of model providers' SDKs. (docs/reference/formats.md)

There is one module per format; ``render`` gives access to all of them. They are pure and only use the standard library:
they convert a surface's JSON document to parameters of the provider's SDK. To add a format, add a module, and its name
to the table here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from toolbelt.core import errors
from toolbelt.formats import anthropic, gemini, mcp, openai_chat, openai_responses, profiles, vercel

Document = Mapping[str, Any]

_RENDERERS: Mapping[str, Callable[[Document, str, profiles.Profile], dict[str, Any]]] = {
    "anthropic": anthropic.render,
    "gemini": gemini.render,
    "mcp": mcp.render,
    "openai_chat": openai_chat.render,
    "openai_responses": openai_responses.render,
    "vercel": vercel.render,
}
FORMATS = tuple(_RENDERERS)


def render(form: str, document: Document, mode: str = "rewrite", *, model: str = "") -> dict[str, Any]:
    """Return a surface's JSON document in the format named ``form``, for the ``model`` with this name.

    Raise errors.Invalid for an unknown format or mode, or errors.ProviderLimit for what the provider does not accept.
    """
    if form not in _RENDERERS:
        formats = ", ".join(FORMATS)
        problem = errors.Problem(path="format", message=f"Unknown format {form!r}. Use one of {formats}.")
        raise errors.Invalid([problem])
    return _RENDERERS[form](document, mode, profiles.of(model, form))
