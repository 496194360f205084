"""The matrix of agents and toolkits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.utils.http import urlencode

from toolbelt.control.access import access_index
from toolbelt.web.kit import paging, pieces, words
from toolbelt.web.toolkits import view_model as toolkits

AGENTS_AT_ONCE = 12
# A window of the matrix: few enough cells to be made and looked at.
TOOLKITS_AT_ONCE = 42


def page(
    index: access_index.AccessIndex,
    filters: Mapping[str, Any],
    *,
    path: str,
    may_flip: Callable[[str], bool],
) -> pieces.View:
    """Return the matrix, narrowed to the toolkits and the agents that the form says; ``path`` is the page's own,
    ``may_flip`` says for which agents the reader may flip switches.
    """
    keys = [holder.agent.key for holder in index.holders]
    is_one = filters["agent"] in keys
    if is_one:
        fitting = [holder for holder in index.holders if holder.agent.key == filters["agent"]]
    else:
        fitting = paging.named(index.holders, filters["agents"])
    columns = paging.part(fitting, filters["agents_offset"], AGENTS_AT_ONCE)
    own = frozenset(filter(may_flip, keys))
    every = index.catalog.toolkits.values()
    fitting_kits = [kit for kit in every if words.contains(filters["q"], kit.key, kit.title)]
    lines = paging.part(fitting_kits, filters["offset"], TOOLKITS_AT_ONCE)
    holders, kits, count = columns.items, lines.items, lines.total
    kept = {"q": filters["q"]} if filters["q"] else {}
    return pieces.View(
        rows=tuple(
            pieces.View(
                toolkit=toolkits.line(toolkits.held(index, kit)),
                cells=tuple(
                    toolkits.cell(holder, kit, may_change=holder.agent.key in own) for holder in holders
                ),
            )
            for kit in kits
        ),
        agents=tuple(
            pieces.View(
                key=holder.agent.key,
                url=f"{path}?{urlencode({**kept, 'agent': holder.agent.key})}",
                set=f"{words.number(len(holder.agent.switches))} set",
            )
            for holder in holders
        ),
        one=is_one,
        clear="Reset to default" if is_one else "Reset",
        query=filters["q"],
        agents_query=filters["agents"],
        find_agents=len(keys) > AGENTS_AT_ONCE or bool(filters["agents"]),
        toolkits_pages=lines.pages(filters, path),
        agents_pages=columns.pages(filters, path, name="agents_offset"),
        choices=pieces.choices(keys, filters["agent"], "All agents"),
        narrowed=bool(filters["q"] or is_one or filters["agents"]),
        matches=f"{words.counted(count, 'toolkit')}, {words.counted(columns.total, 'agent')}",
        may_change=bool(own),
        may_change_some=0 < len(own) < len(keys),
    )
