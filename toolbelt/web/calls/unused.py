"""The tab of tools that are on and were not called."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

from django.utils.http import urlencode

from toolbelt.control.access import access_index
from toolbelt.control.reports import usage
from toolbelt.core import catalog
from toolbelt.web.kit import paging, periods, pieces, words

MAX_UNUSED = 30
# For so many agents each can be turned off here; for the others, where all of its agents are.
MAX_AGENTS = 6


def present(
    given: Mapping[str, Any],
    kept: Mapping[str, Any],
    period: Mapping[str, Any],
    path: str,
    may_flip: Callable[[str], bool],
) -> pieces.View:
    """Return a part of the tools, the largest first; ``kept`` is what the address of another part of them keeps, and
    ``may_flip`` says for which agents the reader may turn them off.
    """
    agent, index = given["agent"], access_index.load()
    idle = usage.unused(index, agent=agent, maximum=MAX_UNUSED, offset=int(given["offset"] or 0), **period)
    overrides = {access.agent.key: access.agent.overrides for access in index.agents}
    behind = idle.offset + len(idle.tools)
    cost = "per request" if agent else "in total, for one request of each agent"
    return pieces.View(
        matches=f"{words.tools(idle.count)} on but unused",
        tools=tuple(_tool(tool, overrides, may_flip) for tool in idle.tools),
        words=f"{words.about(idle.tokens)} tokens {cost}",
        agent=agent,
        uncalled="" if agent or periods.days(given)[0] else _uncalled(index.catalog, period),
        pages=paging.Pages(
            words=f"{idle.offset + 1} to {behind} of {words.number(idle.count)}",
            newer_url=f"{path}?{urlencode({**kept, 'offset': max(0, idle.offset - MAX_UNUSED)})}"
            if idle.offset
            else "",
            older_url=f"{path}?{urlencode({**kept, 'offset': behind})}" if behind < idle.count else "",
        ),
    )


def _uncalled(stored: catalog.Catalog, period: Mapping[str, Any]) -> str:
    """Return how many tools no agent called, whether any has them or not."""
    count = len(usage.uncalled(stored, since=period["since"]))
    return f"All tools that were not called, on or off: {words.number(count)}"


def _tool(
    unused: usage.Unused, overrides: Mapping[str, Mapping[str, Any]], may_flip: Callable[[str], bool]
) -> pieces.View:
    """Return an unused tool with the agents for which the reader can turn it off."""
    key = unused.tool.key
    return pieces.View(
        tool=key,
        agents=words.listing(unused.agents),
        is_of_many=len(unused.agents) > 1,
        tokens=words.number(unused.tool.tokens),
        may_turn_off=tuple(
            pieces.View(agent=name, was=words.stored(overrides[name].get(key)))
            for name in itertools.islice(filter(may_flip, unused.agents), MAX_AGENTS)
        ),
        is_more=len(unused.agents) > MAX_AGENTS,
    )
