"""Tokens and calls by agent and by tool: what each costs with a request, and whether that is used.

Read in a fixed number of queries.
"""

from __future__ import annotations

import collections
import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from toolbelt.control.access import access_index
from toolbelt.core import catalog, errors
from toolbelt.store import call_figures, clock, context_use

# The longest period: sums of tokens are kept for as long.
MAX_DAYS = context_use.MAX_AGE.days

# The number of calls, by agent and tool.
Counts = Mapping[tuple[str, str], int]
_NOTHING = context_use.Total(answers=0, sent=0, allowed=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class OfAgent:
    """One agent: its tools and their tokens now, outside a session; its calls in the period, the answers that listed
    tools, the tokens that it was sent in them, and those of the same answers with every tool that it may have.
    """

    agent: str
    tools: int
    tokens: int
    unused: int
    calls: int
    answers: int
    sent: int
    allowed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OfTool:
    """One tool that agents have now: its tokens with each request, the agents that have it, those of them that did not
    call it in the period, and its calls by these agents.
    """

    tool: str
    plugin: str
    tokens: int
    agents: tuple[str, ...]
    unused_by: tuple[str, ...]
    calls: int

    @property
    def total(self) -> int:
        """Return its tokens over all agents that have it, a request of each."""
        return self.tokens * len(self.agents)

    @property
    def wasted(self) -> int:
        """Return its tokens over all agents that have it and did not call it, a request of each."""
        return self.tokens * len(self.unused_by)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The use ``since`` this time: agents and tools, each with the most tokens first."""

    since: dt.datetime
    agents: tuple[OfAgent, ...]
    tools: tuple[OfTool, ...]

    @property
    def unused(self) -> tuple[OfTool, ...]:
        """Return the tools that an agent has and did not call, the most expensive first."""
        idle = (tool for tool in self.tools if tool.unused_by)
        return tuple(sorted(idle, key=lambda tool: (-tool.wasted, tool.tool)))


def report(*, days: int, agent: str = "") -> Report:
    """Return the use of the last ``days`` days, of all agents that are not archived, or of one.

    Raise errors.NotFound for an agent that does not exist, or is archived.
    """
    since = clock.now() - dt.timedelta(days=days)
    index = access_index.load()
    accesses = [access for access in index.agents if agent in ("", access.agent.key)]
    if agent and not accesses:
        raise errors.NotFound("agent", agent, [access.agent.key for access in index.agents])
    counts = call_figures.by_agent_and_tool(since=since)
    sent = context_use.by_agent(since=since.date())
    agents = _of_agents(accesses, counts, sent)
    tools = _of_tools(accesses, counts, index.catalog)
    return Report(
        since=since,
        agents=tuple(sorted(agents, key=lambda used: (-used.sent, -used.tokens, used.agent))),
        tools=tuple(sorted(tools, key=lambda used: (-used.total, used.tool))),
    )


def _of_agents(
    accesses: Iterable[access_index.AgentAccess], counts: Counts, sent: Mapping[str, context_use.Total]
) -> list[OfAgent]:
    calls_of: collections.Counter[str] = collections.Counter()
    for (name, _), count in counts.items():
        calls_of[name] += count
    return [
        OfAgent(
            agent=name,
            tools=access.inventory.spent.tools,
            tokens=access.inventory.spent.tokens,
            unused=sum((name, key) not in counts for key in access.active),
            calls=calls_of[name],
            answers=(total := sent.get(name, _NOTHING)).answers,
            sent=total.sent,
            allowed=total.allowed,
        )
        for access in accesses
        for name in (access.agent.key,)
    ]


def _of_tools(
    accesses: Iterable[access_index.AgentAccess], counts: Counts, stored: catalog.Catalog
) -> list[OfTool]:
    users: dict[str, list[str]] = {}
    for access in accesses:
        for key in access.active:
            users.setdefault(key, []).append(access.agent.key)
    return [
        OfTool(
            tool=key,
            plugin=stored.tools[key].plugin,
            tokens=stored.tools[key].tokens,
            agents=tuple(names),
            unused_by=tuple(name for name in names if (name, key) not in counts),
            calls=sum(counts.get((name, key), 0) for name in names),
        )
        for key, names in users.items()
    ]
