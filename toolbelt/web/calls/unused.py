"""The tab of tools that are on and were not called."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

from toolbelt.control.access import access_index
from toolbelt.control.reports import usage
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

    def settings(tool: usage.Unused) -> list[tuple[str, str]]:
        """Return the agents for which the reader can turn the tool off, each with what is stored for it."""
        names = itertools.islice(filter(may_flip, tool.agents), MAX_AGENTS)
        return [(name, words.form_value(overrides[name].get(tool.tool.key))) for name in names]

    shown = paging.Part(items=idle.tools, offset=idle.offset, total=idle.count, size=MAX_UNUSED)
    is_whole = not agent and not periods.days(given)[0]
    return pieces.View(
        tools=[(tool, settings(tool)) for tool in idle.tools],
        max_agents=MAX_AGENTS,
        tokens=idle.tokens,
        agent=agent,
        # The tools that no agent called, whether any has them or not.
        uncalled=len(usage.uncalled(index.catalog, since=period["since"])) if is_whole else None,
        matches=f"{words.tools(idle.count)} on but unused",
        pages=shown.pages(kept, path),
    )
