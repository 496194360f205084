"""How is the matrix of agents and toolkits filled?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.utils.http import urlencode

from toolbelt.control import holdings
from toolbelt.core import catalog
from toolbelt.web import words
from toolbelt.web.pages import paging, toolkits
from toolbelt.web.presenters import answers, matrix, pieces

AGENTS_AT_ONCE = 16


def page(
    found: holdings.Holdings,
    said: Mapping[str, Any],
    *,
    path: str,
    here: str,
    notice: answers.Notice | None,
    may_flip: Callable[[str], bool],
) -> matrix.MatrixPage:
    """Fill the matrix, narrowed to the toolkits and the agents that the form says; ``path`` is the page's own,
    ``may_flip`` says for which agents the reader may flip switches.
    """
    keys = [holder.agent.key for holder in found.holders]
    one = said["agent"] in keys
    if one:
        fitting = [holder for holder in found.holders if holder.agent.key == said["agent"]]
    else:
        fitting = paging.named(found.holders, said["agents"])
    columns = paging.part(fitting, said["agents_offset"], AGENTS_AT_ONCE)
    own = frozenset(filter(may_flip, keys))
    fitting_kits = [kit for kit in found.catalog.toolkits.values() if _fits(kit, said["q"])]
    lines = paging.part(fitting_kits, said["offset"])
    holders, kits, count = columns.items, lines.items, lines.total
    kept = {"q": said["q"]} if said["q"] else {}
    return matrix.MatrixPage(
        rows=tuple(
            matrix.Row(
                toolkit=toolkits.line(toolkits.held(found, kit)),
                cells=tuple(
                    toolkits.cell(holder, kit, may_change=holder.agent.key in own) for holder in holders
                ),
            )
            for kit in kits
        ),
        agents=tuple(
            matrix.Agent(
                key=holder.agent.key,
                url=f"{path}?{urlencode({**kept, 'agent': holder.agent.key})}",
                set=f"{words.number(len(holder.agent.switches))} set",
            )
            for holder in holders
        ),
        one=one,
        clear="Follow defaults" if one else "Clear",
        query=said["q"],
        agents_query=said["agents"],
        find_agents=len(keys) > AGENTS_AT_ONCE or bool(said["agents"]),
        toolkits_pages=lines.pages(said, path),
        agents_pages=columns.pages(said, path, name="agents_offset"),
        choices=(
            pieces.Choice(value="", label="All agents", chosen=not one),
            *(pieces.Choice(value=key, label=key, chosen=key == said["agent"]) for key in keys),
        ),
        narrowed=bool(said["q"] or one or said["agents"]),
        matches=f"{words.number(count)} toolkit{'' if count == 1 else 's'}, "
        f"{words.number(columns.total)} agent{'' if columns.total == 1 else 's'}",
        notice=notice,
        may_change=bool(own),
        may_change_some=0 < len(own) < len(keys),
        here=here,
    )


def _fits(toolkit: catalog.Toolkit, query: str) -> bool:
    wanted = query.strip().casefold()
    return not wanted or any(wanted in text.casefold() for text in (toolkit.key, toolkit.title))
