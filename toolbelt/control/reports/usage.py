"""Usage: the number and duration of calls, and the tools that are never called. Read in a fixed number of queries."""

from __future__ import annotations

import collections
import datetime as dt
import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from toolbelt.control.access import access_index
from toolbelt.core import catalog
from toolbelt.store import call_figures, call_records

OfTool = call_figures.OfTool
OfDay = call_figures.OfDay
OfHour = call_figures.OfHour
DurationsOfDay = call_figures.DurationsOfDay
Page = call_records.Page
Call = call_records.Call

by_tool = call_figures.by_tool
of_tools = call_figures.of_tools
by_day = call_figures.by_day
by_hour = call_figures.by_hour
durations_by_day = call_figures.durations_by_day
page = call_records.page
find = call_records.find
iterate = call_records.iterate
count_newer = call_records.count_newer
exceeds = call_records.exceeds
ERROR = call_records.ERROR
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


def uncalled(stored: catalog.Catalog, *, since: dt.datetime) -> frozenset[str]:
    """Return the keys of the tools that no agent called in this time, without retired tools, prompts and resources."""
    called = call_figures.called_tools(since)
    return frozenset(
        key
        for key, tool in stored.tools.items()
        if tool.kind == "tool" and not tool.retired and key not in called
    )


def unused(
    index: access_index.AccessIndex,
    *,
    maximum: int,
    offset: int = 0,
    agent: str = "",
    since: dt.datetime | None = None,
    until: dt.datetime | None = None,
) -> AllUnused:
    """Return the tools that agents have now and did not call in this time, the most expensive first: at most
    ``maximum`` of them.

    If there is nothing at ``offset``, the last page is returned.
    """
    accesses = {access.agent.key: access.active for access in index.agents if agent in ("", access.agent.key)}
    idle: collections.Counter[str] = collections.Counter()
    for active in accesses.values():
        idle.update(active)
    called = call_figures.called(agent=agent, since=since, until=until)
    idle.subtract(key for caller, key in called if key in accesses.get(caller, ()))
    tools = index.catalog.tools
    costs = {key: tools[key].tokens * count for key, count in idle.items() if count}
    if offset >= len(costs):
        offset = max(0, len(costs) - 1) // maximum * maximum
    most_expensive = heapq.nsmallest(offset + maximum, costs, key=lambda key: (-costs[key], key))
    return AllUnused(
        tools=[
            Unused(
                tool=tools[key],
                agents=tuple(
                    name for name, active in accesses.items() if key in active and (name, key) not in called
                ),
            )
            for key in most_expensive[offset:]
        ],
        offset=offset,
        count=len(costs),
        tokens=sum(costs.values()),
    )
