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
    keys = [access.agent.key for access in index.agents]
    is_one = filters["agent"] in keys
    if is_one:
        fitting = [access for access in index.agents if access.agent.key == filters["agent"]]
    else:
        fitting = paging.matching_agents(index.agents, filters["agents"])
    columns = paging.part(fitting, filters["agents_offset"], AGENTS_AT_ONCE)
    own = frozenset(filter(may_flip, keys))
    every = index.catalog.toolkits.values()
    fitting_kits = [kit for kit in every if words.contains(filters["q"], kit.key, kit.title)]
    lines = paging.part(fitting_kits, filters["offset"], TOOLKITS_AT_ONCE)
    accesses, kits, count = columns.items, lines.items, lines.total
    parameters = {"q": filters["q"]} if filters["q"] else {}
    return pieces.View(
        rows=tuple(
            pieces.View(
                toolkit=toolkits.line(toolkits.use_of(index, kit)),
                cells=tuple(
                    toolkits.cell(access, kit, may_change=access.agent.key in own) for access in accesses
                ),
            )
            for kit in kits
        ),
        agents=tuple(
            pieces.View(
                key=access.agent.key,
                url=f"{path}?{urlencode({**parameters, 'agent': access.agent.key})}",
                set=f"{words.number(len(access.agent.switches))} set",
            )
            for access in accesses
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
