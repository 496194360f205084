"""What does a caller hear of a change? What it was, what it is, what that does to the model, and how to undo it."""

from __future__ import annotations

from typing import Any

import ninja

from toolbelt.control import guards, writing
from toolbelt.core import effects


class Effect(ninja.Schema):
    """What the model sees: counts before and after; tools that came and went; toolkits whose policy changed, as
    ``[toolkit, before, after]``, where a state is on, off or none.
    """

    tools: tuple[int, int]
    tokens: tuple[int, int]
    added: list[str]
    removed: list[str]
    policy: list[tuple[str, str, str]]


class Changed(ninja.Schema):
    """What a change did. ``change`` is its number in /changes, by which it can be undone; null: it was so already.

    ``before`` and ``after`` hold what differs; ``effect`` is null where no single agent was changed.
    """

    change: int | None
    before: Any
    after: Any
    effect: Effect | None = None


def told(change: writing.Change) -> dict[str, Any]:
    """Tell what a change did."""
    return {
        "change": change.entry,
        "before": change.before,
        "after": change.after,
        "effect": effect(change.effect),
    }


def effect(found: effects.Effect | None) -> dict[str, Any] | None:
    """Tell an effect, as a refusal that asks for confirmation tells it."""
    if found is None:
        return None
    shown = guards.differences("", None, found)
    return {name: shown[name] for name in Effect.model_fields}
