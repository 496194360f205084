"""The overview: the agents, today's changes, and what needs attention.

Read in a fixed number of queries, however many entries there are; nothing here writes.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from toolbelt.control.reports import attention, error_spikes, queries
from toolbelt.store import audit, call_figures


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The content of the overview. ``listed`` are the first agents, with their newest changes; ``total`` is the number
    of tools; ``calls`` is None unless requested, and without them there are no ``spikes``.
    """

    attention: attention.Attention
    spikes: Sequence[error_spikes.Spike]
    listed: Sequence[queries.Summary]
    total: int
    today: audit.Page
    last: audit.Entry | None
    calls: Sequence[call_figures.OfDay] | None


def load(*, today: dt.datetime, maximum: int, max_agents: int, calls_since: dt.datetime | None) -> Overview:
    """Return the overview: at most ``maximum`` changes since ``today`` began, at most ``max_agents`` agents, and calls
    since ``calls_since``, if given.
    """
    needs_attention = attention.load()
    changes = audit.page(since=today, size=maximum, folded=True)
    last = next(iter(changes.entries), None) or audit.last()
    return Overview(
        attention=needs_attention,
        spikes=() if calls_since is None else error_spikes.load(),
        listed=queries.with_last(needs_attention.agents[:max_agents]),
        total=needs_attention.stored.tool_count,
        today=changes,
        last=last,
        calls=None if calls_since is None else call_figures.by_day(since=calls_since),
    )
