"""What is sent of a surface? Its whole JSON document, with the provider's form and the difference that were asked for.

For every shell that answers over the wire, so that one question has one answer, byte for byte.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolbelt.core import surface
from toolbelt.runtime import rendering


def fingerprint(answer: surface.Surface, form: str | None = None) -> str:
    """Give the fingerprint of what is sent: the surface's own, or that of its provider's form."""
    return answer.fingerprint if form is None else rendering.fingerprint(answer, form)


def of(
    answer: surface.Surface, form: str | None = None, declared: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Put the document together. ``declared``: what the model was given (name and hash); None: nobody says.

    Raises errors.Invalid for a format that is not known, errors.ProviderLimit for what the provider does not take.
    """
    compared = rendering.delta(answer, declared or {})
    return {
        **answer.document(),
        "fingerprint": fingerprint(answer, form),
        "declared": compared["declared"],
        "delta": None if declared is None else compared["delta"],
        "provider": {} if form is None else rendering.render(answer, form),
    }
