"""Usage: what was called, how often and how fast, and what never was. Read in a fixed number of queries."""

from __future__ import annotations

import collections
import datetime as dt
import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from toolbelt.control.access import access_index
from toolbelt.core import catalog
from toolbelt.store import call_figures, calls

OfTool = call_figures.OfTool
OfDay = call_figures.OfDay
TookOnDay = call_figures.TookOnDay
Page = calls.Page
Call = calls.Call

by_tool = call_figures.by_tool
of_tools = call_figures.of_tools
by_day = call_figures.by_day
took_by_day = call_figures.took_by_day
page = calls.page
find = calls.find
walk = calls.walk
count_newer = calls.count_newer
are_more = calls.are_more
record_all = calls.record_all
logged_values = call_figures.logged_values


@dataclass(frozen=True, slots=True, kw_only=True)
class Unused:
    """A tool that ``agents`` have and did not call; it costs each of them its tokens with every request."""

    tool: catalog.Tool
    agents: tuple[str, ...]

    @property
    def tokens(self) -> int:
        """Return its cost in tokens, over all agents."""
        return self.tool.tokens * len(self.agents)


@dataclass(frozen=True, slots=True, kw_only=True)
class AllUnused:
    """A page of the tools that agents have and did not call, the most expensive first, from ``offset``.

    ``count`` and ``tokens`` are the totals.
    """

    tools: Sequence[Unused]
    offset: int
    count: int
    tokens: int


def unused(
    index: access_index.AccessIndex,
    *,
    most: int,
    offset: int = 0,
    agent: str = "",
    since: dt.datetime | None = None,
    until: dt.datetime | None = None,
) -> AllUnused:
    """Return the tools that agents have now and did not call in this time: at most ``most``, the most expensive first.

    If there is nothing at ``offset``, the last page is returned.
    """
    called: dict[str, set[str]] = {}
    for caller, key in call_figures.called(agent=agent, since=since, until=until):
        called.setdefault(caller, set()).add(key)
    idle_by_agent = [
        (holder.agent.key, holder.active.difference(called.get(holder.agent.key, ())))
        for holder in index.holders
        if agent in ("", holder.agent.key)
    ]
    idle: collections.Counter[str] = collections.Counter()
    for _, idle_tools in idle_by_agent:
        idle.update(idle_tools)
    tools = index.catalog.tools
    if offset >= len(idle):
        offset = max(0, len(idle) - 1) // most * most
    most_expensive = heapq.nsmallest(
        offset + most, idle, key=lambda key: (-tools[key].tokens * idle[key], key)
    )
    return AllUnused(
        tools=[
            Unused(
                tool=tools[key],
                agents=tuple(name for name, idle_tools in idle_by_agent if key in idle_tools),
            )
            for key in most_expensive[offset:]
        ],
        offset=offset,
        count=len(idle),
        tokens=sum(tools[key].tokens * count for key, count in idle.items()),
    )
