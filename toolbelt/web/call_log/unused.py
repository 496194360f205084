"""The tab of tools that are on but were not called."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

from toolbelt.control.access import access_index
from toolbelt.control.reports import usage
from toolbelt.web.kit import paging, periods, pieces, words

MAX_UNUSED = 30
# The most agents for which a tool can be turned off here; its own page has the others.
MAX_AGENTS = 6


class Unused(pieces.View):
    """A page of the tools, the largest first; ``parameters`` are those of the links to other pages, and
    ``may_flip`` tells for which agents the reader may turn them off.
    """

    def __init__(
        self,
        criteria: Mapping[str, Any],
        parameters: Mapping[str, Any],
        period: Mapping[str, Any],
        path: str,
        may_flip: Callable[[str], bool],
    ) -> None:
        agent, index, offset = criteria["agent"], access_index.load(), int(criteria["offset"] or 0)
        unused = usage.unused(index, agent=agent, maximum=MAX_UNUSED, offset=offset, **period)
        overrides = {access.agent.key: access.agent.overrides for access in index.agents}

        def settings(tool: usage.Unused) -> list[tuple[str, str]]:
            """Return the agents for which the reader can turn the tool off, each with its stored override."""
            agents = itertools.islice(filter(may_flip, tool.agents), MAX_AGENTS)
            return [(name, words.form_value(overrides[name].get(tool.tool.key))) for name in agents]

        part = paging.Part(items=unused.tools, offset=unused.offset, total=unused.count, size=MAX_UNUSED)
        is_whole = not agent and not periods.days(criteria)[0]
        self.tools = [(tool, settings(tool)) for tool in unused.tools]
        self.max_agents = MAX_AGENTS
        self.tokens = unused.tokens
        self.agent = agent
        # The tools that no agent called, whether they are on for any agent or not.
        self.uncalled = len(usage.uncalled(index.catalog, since=period["since"])) if is_whole else None
        self.matches = f"{words.tools(unused.count)} on but unused"
        self.pages = part.pages(parameters, path)
