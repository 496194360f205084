"""The context that agents save by not receiving every allowed tool, in words."""

from __future__ import annotations

import datetime as dt

from toolbelt.control.reports import context_saved
from toolbelt.runtime.records import context_use
from toolbelt.web.kit import pieces, words

DAYS = 30


def for_all_agents() -> context_saved.Total | None:
    """Return the context that all agents saved in the last :data:`DAYS` days; None if nothing was counted."""
    total = context_saved.total(since=_first_day())
    return total if total.answers else None


class OfAgent(pieces.View):
    """The tokens of an agent's current surface (``now``), and the context that it saved in the last days."""

    def __init__(self, agent: str, now: context_use.Tokens) -> None:
        total = context_saved.total(since=_first_day(), agent=agent)
        days = context_saved.by_day(since=_first_day(), agent=agent)
        self.now = now
        self.total = total if total.answers else None
        self.days = tuple(reversed(days))


def in_words(use: context_use.Tokens | context_saved.Total) -> str:
    """Return for example "92 % less context: ~1.8k instead of ~23.4k tokens"."""
    amounts = f"{words.approx(use.sent)} instead of {words.approx(use.allowed)} tokens"
    saved = 1 - use.sent / use.allowed if use.allowed else 0
    return f"{int(100 * saved)} % less context: {amounts}" if saved >= 0.01 else f"No less context: {amounts}"


def _first_day() -> dt.date:
    return dt.datetime.now(dt.UTC).date() - dt.timedelta(days=DAYS - 1)
