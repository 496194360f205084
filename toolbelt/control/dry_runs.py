"""Dry runs: a change with everything that it would do, in a transaction that is rolled back."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from toolbelt.control import impacts, writing
from toolbelt.core import errors
from toolbelt.store import snapshots

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """The effects of a change. ``change`` has the effect that the dashboard shows, live sessions included, and no entry
    in the audit log; ``reasons`` are those for which it would have to be confirmed.
    """

    change: writing.Change
    reasons: tuple[str, ...] = ()


def confirming(
    write: writing.Write, act: Callable[[writing.Write], _Result]
) -> tuple[_Result, tuple[str, ...]]:
    """Return what ``act`` returns, which is confirmed if it has to be, and the reasons for that."""
    try:
        return act(write.replace(confirm=False)), ()
    except errors.ConfirmationRequired as error:
        return act(write.replace(confirm=True)), error.reasons


def run(write: writing.Write, act: Callable[[writing.Write], writing.Change], *, agent: str = "") -> DryRun:
    """Return the effects of ``act``, without keeping them; raise as it does, except ConfirmationRequired.

    ``agent`` is the one that it changes, if it changes one that exists.
    """
    before = snapshots.find(agent, None) if agent else None
    with writing.dry_run():
        change, reasons = confirming(write, act)
        effect = change.effect
        if before is not None and effect is not None:
            after = snapshots.find(agent, None)
            effect = impacts.with_sessions(before.catalog, before.agent, after.agent, effect)
    return DryRun(change=dataclasses.replace(change, entry=None, effect=effect), reasons=reasons)
