"""What does the caller pass to its model's provider, and what of it is new?

For every shell that offers a format: the provider's form of a surface, the fingerprint that goes with it, and the
difference to what the model was already given.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import toolbelt
from toolbelt import adapters
from toolbelt.core import declared as declarations
from toolbelt.core import surface

FORMATS = adapters.FORMATS


def render(answer: surface.Surface, form: str, mode: str = "rewrite") -> dict[str, Any]:
    """Say a surface in the format named ``form``, one of :data:`FORMATS`: the ``provider`` part of its document.

    Raises errors.Invalid for a format or mode that is not known, errors.ProviderLimit for what the provider does not
    take.
    """
    return adapters.render(form, answer.content(), mode)


def fingerprint(answer: surface.Surface, form: str, mode: str = "rewrite") -> str:
    """Give the fingerprint of a surface said in a format: equal content in an equal form has an equal one.

    A form is what this version makes of it, so another version's is another one.
    """
    said = "\n".join((answer.fingerprint, form, mode, toolbelt.__version__))
    return "sha256:" + hashlib.sha256(said.encode()).hexdigest()


def delta(answer: surface.Surface, declared: Mapping[str, str]) -> dict[str, Any]:
    """Compare a surface with the tools that the model was ``declared`` (name and hash of each).

    Gives ``declared``, to be sent back with the next question, and ``delta``: what was added, removed and changed.
    """
    now = declarations.hashes((*answer.tools, *answer.meta_tools))
    return {"declared": now, "delta": declarations.difference(now, declared).document()}
