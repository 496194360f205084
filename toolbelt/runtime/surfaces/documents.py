"""The JSON document of a surface, with the requested provider format and the delta, for all interfaces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolbelt.core import surface
from toolbelt.runtime.surfaces import rendering


def fingerprint(answer: surface.Surface, form: str | None = None, model: str | None = None) -> str:
    """Return the fingerprint of the document: the surface's own, or that of its provider format."""
    return answer.fingerprint if form is None else rendering.fingerprint(answer, form, model=model)


def of(
    answer: surface.Surface,
    form: str | None = None,
    declared: Mapping[str, str] | None = None,
    model: str | None = None,
) -> dict[str, Any]:
    """Return the document. ``declared`` is the hash of each tool that the model already has, by name; None if unknown.

    ``model`` is the name of the model; None: the agent's.

    Raise errors.Invalid for an unknown format, or errors.ProviderLimit for what the provider does not accept.
    """
    comparison = rendering.delta(answer, declared or {})
    return {
        **answer.document(),
        "fingerprint": fingerprint(answer, form, model),
        "declared": comparison["declared"],
        "delta": None if declared is None else comparison["delta"],
        "provider": {} if form is None else rendering.render(answer, form, model=model),
    }
