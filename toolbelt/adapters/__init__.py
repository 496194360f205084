"""What does a caller pass to its model's provider? (docs/reference/formats.md)

One module for each format; ``render`` is the way to all of them. Pure and of the standard library alone: a surface's
JSON document goes in, and parameters of the provider's SDK come out. Adding a format is adding a module, and its name
to the table here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from toolbelt.adapters import anthropic, gemini, mcp, openai_chat, openai_responses, vercel
from toolbelt.core import errors

Document = Mapping[str, Any]

_RENDERERS: Mapping[str, Callable[[Document, str], dict[str, Any]]] = {
    "anthropic": anthropic.render,
    "gemini": gemini.render,
    "mcp": mcp.render,
    "openai_chat": openai_chat.render,
    "openai_responses": openai_responses.render,
    "vercel": vercel.render,
}
FORMATS = tuple(_RENDERERS)


def render(form: str, document: Document, mode: str = "rewrite") -> dict[str, Any]:
    """Say a surface's JSON document in the format named ``form``.

    Raises errors.Invalid for a format or mode that is not known, and errors.ProviderLimit for what the provider
    does not take.
    """
    if form not in _RENDERERS:
        known = ", ".join(FORMATS)
        problem = errors.Problem(path="format", message=f"{form!r} is no format: it is one of {known}.")
        raise errors.Invalid([problem])
    return _RENDERERS[form](document, mode)
