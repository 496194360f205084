"""Surfaces in the formats of model providers, with their fingerprints and deltas, for all interfaces."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import toolbelt
from toolbelt import formats
from toolbelt.core import surface
from toolbelt.core import tool_deltas as declarations
from toolbelt.formats import profiles

FORMATS = formats.FORMATS


def render(
    answer: surface.Surface, form: str, mode: str = "rewrite", *, model: str | None = None
) -> dict[str, Any]:
    """Return a surface in the format named ``form``, one of :data:`FORMATS`: the ``provider`` part of its document.

    ``model`` is the name of the model that receives it; None: the agent's. Raise errors.Invalid for an unknown format
    or mode, or errors.ProviderLimit if the provider does not accept it.
    """
    return formats.render(form, answer.content(), mode, model=model_of(answer, model))


def fingerprint(
    answer: surface.Surface, form: str, mode: str = "rewrite", *, model: str | None = None
) -> str:
    """Return the fingerprint of a surface in a format: equal for equal content in the same format.

    It includes Toolbelt's version, because versions may render a format differently; and what depends on the model, if
    anything does.
    """
    profile = profiles.of(model_of(answer, model), form)
    said = profile.name if answer.directive or breaks_thinking(answer, form, model) else ""
    text = "\n".join((answer.fingerprint, form, mode, said, toolbelt.__version__))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def breaks_thinking(answer: surface.Surface, form: str, model: str | None) -> bool:
    """Return whether the model refuses its earlier thinking once what is rendered here has changed."""
    return form == "anthropic" and profiles.of(model_of(answer, model), form).binds_thinking


def delta(answer: surface.Surface, declared: Mapping[str, str]) -> dict[str, Any]:
    """Compare a surface with the tools that the model has ``declared`` (the hash of each, by name).

    Return ``declared``, to be sent with the next request, and ``delta``: the tools that were added, removed and
    changed.
    """
    current = declarations.hashes((*answer.tools, *answer.meta_tools))
    return {"declared": current, "delta": declarations.difference(current, declared).document()}


def model_of(answer: surface.Surface, model: str | None) -> str:
    """Return the name of the model that receives the surface: the request's, or else the agent's."""
    return answer.resolution.context.agent.model if model is None else model
