"""The context that agents save by not receiving every allowed tool, in words."""

from __future__ import annotations

import datetime as dt

from toolbelt.control.reports import context_saved
from toolbelt.runtime import context_use
from toolbelt.web.kit import pieces, words

DAYS = 30


def of_all() -> context_saved.Total | None:
    """Return what all agents saved in the last days; None if nothing was counted."""
    total = context_saved.total(since=_first_day())
    return total if total.answers else None


def of_agent(agent: str, now: context_use.Tokens) -> pieces.View:
    """Return what one agent saves with the surface that it has ``now``, and what it saved in the last days."""
    total = context_saved.total(since=_first_day(), agent=agent)
    days = context_saved.by_day(since=_first_day(), agent=agent)
    return pieces.View(now=now, total=total if total.answers else None, days=tuple(reversed(days)))


def in_words(use: context_use.Tokens | context_saved.Total) -> str:
    """Return for example "92 % less context: ~1.8k instead of ~23.4k tokens"."""
    of = f"{words.about(use.sent)} instead of {words.about(use.allowed)} tokens"
    saved = 1 - use.sent / use.allowed if use.allowed else 0
    return f"{int(100 * saved)} % less context: {of}" if saved >= 0.01 else f"No less context: {of}"


def _first_day() -> dt.date:
    return dt.datetime.now(dt.UTC).date() - dt.timedelta(days=DAYS - 1)
