"""What was called, how often and how fast, and what never was? Read for the screens in a fixed number of queries."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from toolbelt.control import holdings
from toolbelt.core import catalog
from toolbelt.store import call_figures, calls

OfTool = call_figures.OfTool
OfDay = call_figures.OfDay
TookOnDay = call_figures.TookOnDay
Page = calls.Page
Call = calls.Call

by_tool = call_figures.by_tool
by_day = call_figures.by_day
took_by_day = call_figures.took_by_day
page = calls.page
count_newer = calls.count_newer
are_more = calls.are_more
said = call_figures.said


@dataclass(frozen=True, slots=True, kw_only=True)
class Unused:
    """A tool that ``agents`` have and did not call; each of them pays its tokens at every request."""

    tool: catalog.Tool
    agents: tuple[str, ...]

    @property
    def tokens(self) -> int:
        """Say what it costs, over all agents."""
        return self.tool.tokens * len(self.agents)


def unused(
    found: holdings.Holdings,
    *,
    agent: str = "",
    since: dt.datetime | None = None,
    until: dt.datetime | None = None,
) -> Sequence[Unused]:
    """List the tools that agents have now and did not call in this time, the dearest first."""
    called: Collection[tuple[str, str]] = call_figures.called(agent=agent, since=since, until=until)
    idle: dict[str, list[str]] = {}
    for holder in found.holders:
        if agent in ("", holder.agent.key):
            for key in holder.resolved.active:
                if (holder.agent.key, key) not in called:
                    idle.setdefault(key, []).append(holder.agent.key)
    listed = (Unused(tool=found.catalog.tools[key], agents=tuple(having)) for key, having in idle.items())
    return sorted(listed, key=lambda one: (-one.tokens, one.tool.key))
