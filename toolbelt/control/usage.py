"""What was called, how often and how fast, and what never was? Read for the screens in a fixed number of queries."""

from __future__ import annotations

import collections
import datetime as dt
import heapq
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


@dataclass(frozen=True, slots=True, kw_only=True)
class AllUnused:
    """The dearest of the tools that agents have and did not call; how many there are, and what all of them cost."""

    tools: Sequence[Unused]
    count: int
    tokens: int


def unused(
    found: holdings.Holdings,
    *,
    most: int,
    agent: str = "",
    since: dt.datetime | None = None,
    until: dt.datetime | None = None,
) -> AllUnused:
    """Find the tools that agents have now and did not call in this time: at most so many, the dearest first."""
    called: Collection[tuple[str, str]] = call_figures.called(agent=agent, since=since, until=until)
    by_agent: dict[str, set[str]] = {}
    for caller, key in called:
        by_agent.setdefault(caller, set()).add(key)
    holders = [holder for holder in found.holders if agent in ("", holder.agent.key)]
    idle: collections.Counter[str] = collections.Counter()
    for holder in holders:
        idle.update(holder.active.difference(by_agent.get(holder.agent.key, ())))
    tools = found.catalog.tools
    dearest = heapq.nsmallest(most, idle, key=lambda key: (-tools[key].tokens * idle[key], key))
    return AllUnused(
        tools=[
            Unused(
                tool=tools[key],
                agents=tuple(
                    holder.agent.key
                    for holder in holders
                    if key in holder.active and (holder.agent.key, key) not in called
                ),
            )
            for key in dearest
        ],
        count=len(idle),
        tokens=sum(tools[key].tokens * count for key, count in idle.items()),
    )
