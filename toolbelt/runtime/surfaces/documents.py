"""The JSON document of a surface, with the requested provider format and the delta, for all interfaces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolbelt.core import errors, surface
from toolbelt.runtime.surfaces import appending, rendering

_BREAKS_THINKING = {
    "code": "no-conversation",
    "message": "This model refuses its earlier thinking once the system prompt or the tools have changed, and a flip"
    " changes them. Send the request's `conversation`, so that changes are appended.",
}


def fingerprint(answer: surface.Surface, form: str | None = None, model: str | None = None) -> str:
    """Return the fingerprint of the document: the surface's own, or that of its provider format."""
    return answer.fingerprint if form is None else rendering.fingerprint(answer, form, model=model)


def of(
    answer: surface.Surface,
    form: str | None = None,
    declared: Mapping[str, str] | None = None,
    model: str | None = None,
    conversation: appending.Conversation | None = None,
) -> dict[str, Any]:
    """Return the document. ``declared`` is the hash of each tool that the model already has, by name; None if unknown.

    ``model`` is the name of the model; None: the agent's. With a ``conversation``, the document has ``append`` instead
    of ``provider``.

    Raise errors.Invalid for an unknown format, or errors.ProviderLimit for what the provider does not accept.
    """
    comparison = rendering.delta(answer, declared or {})
    document = {
        **answer.document(),
        "fingerprint": fingerprint(answer, form, model),
        "declared": comparison["declared"],
        "delta": None if declared is None else comparison["delta"],
        "provider": {},
    }
    if conversation is not None:
        hashes = comparison["declared"]
        return {**document, "append": append(answer, conversation, hashes, form, model)}
    if form is not None:
        document["provider"] = rendering.render(answer, form, model=model)
        if rendering.breaks_thinking(answer, form, model):
            document["warnings"] = [*document["warnings"], _BREAKS_THINKING]
    return document


def append(
    answer: surface.Surface,
    conversation: appending.Conversation,
    hashes: Mapping[str, str],
    form: str | None,
    model: str | None,
) -> dict[str, Any]:
    """Return what a conversation must still be told of the surface, whose tools have these ``hashes``.

    Raise errors.Invalid without a known format, or errors.ProviderLimit for what the provider does not accept.
    """
    if form not in rendering.FORMATS:
        formats = ", ".join(rendering.FORMATS)
        message = f"A conversation needs the format of its messages. Use one of {formats}."
        raise errors.Invalid([errors.Problem(path="format", message=message)])
    return appending.of(conversation, answer, hashes, form, rendering.model_of(answer, model))


def unchanged(
    answer: surface.Surface,
    conversation: appending.Conversation,
    hashes: Mapping[str, str],
    form: str | None,
    model: str | None,
) -> dict[str, Any] | None:
    """Return the same as :func:`append` if there is nothing to say, which takes no longer than to find out.

    Otherwise, return None.
    """
    if form not in rendering.FORMATS:
        return None
    return appending.unchanged(conversation, answer, hashes, form, rendering.model_of(answer, model))
