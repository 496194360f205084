"""The list of agents, and the header of the pages of one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from django.urls import reverse

from toolbelt.control.reports import queries
from toolbelt.core import agents as values
from toolbelt.core import inventory
from toolbelt.web.kit import audit_words, model_panel, paging, pieces, words

_NEVER = datetime.min.replace(tzinfo=UTC)
_SORTS: Mapping[str, Callable[[queries.Summary], Any]] = {
    "agent": lambda summary: summary.agent.key.casefold(),
    "profile": lambda summary: (summary.loadout, summary.agent.kind),
    "tools": lambda summary: summary.inventory.spent.tools,
    "tokens": lambda summary: summary.inventory.spent.tokens,
    "change": lambda summary: summary.last.at if summary.last else _NEVER,
}
_COLUMNS = {
    "agent": "Agent",
    "profile": "Loadout or kind",
    "tools": "Tools",
    "tokens": "Tokens",
    "change": "Last change",
}
_CHOICES = {
    "": "Default order",
    "agent": "Name",
    "-tools": "Most tools",
    "-tokens": "Most tokens",
    "-change": "Last changed",
}


def page(
    filters: Mapping[str, Any],
    path: str,
    *,
    may_flip: Callable[[str], bool] = lambda agent: False,
) -> pieces.View:
    """Return the list, narrowed and sorted as the form says; ``path`` is the page's own, ``may_flip`` says for which
    agents the reader may switch a toolkit.
    """
    every = list(queries.summaries(archived=bool(filters["archived"])))
    shown = matching(every, filters)
    if filters["sort"].endswith("change"):
        shown = list(queries.with_last(shown))
    sort = paging.sort(shown, _SORTS, filters["sort"])
    total = every[0].total if every else 0
    part = paging.part(shown, filters["offset"])
    return pieces.View(
        agents=tuple(present(summary) for summary in queries.with_last(part.items)),
        columns=paging.columns(_COLUMNS, filters, sort, path),
        query=filters["q"],
        kinds=pieces.choices(values.KINDS, filters["kind"], "Any kind"),
        loadouts=pieces.choices(
            sorted({summary.loadout for summary in every if summary.loadout}),
            filters["loadout"],
            "Any loadout",
        ),
        sorts=pieces.choices(_CHOICES, sort),
        narrowed=len(shown) != len(every),
        archived=bool(filters["archived"]),
        configured=bool(every) or queries.is_any_agent(),
        matches=words.counted(len(shown), "archived agent" if filters["archived"] else "agent")
        + (f", {words.tools(total)} in the catalog" if every else ""),
        pages=part.pages(filters, path),
        bulk=None
        if filters["archived"]
        else _bulk([summary for summary in shown if may_flip(summary.agent.key)], filters),
    )


def _bulk(summaries: Sequence[queries.Summary], filters: Mapping[str, Any]) -> pieces.View | None:
    """Return the bar that switches a toolkit for all agents that the list shows."""
    toolkits = list(summaries[0].access.catalog.toolkits) if summaries else []
    if not toolkits:
        return None
    return pieces.View(
        action=reverse("web:bulk_agents"),
        fields=paging.hidden_fields(filters, ("sort", "offset")),
        count=f"For all {words.number(len(summaries))} matching agents"
        if len(summaries) > 1
        else "For the agent shown",
        words=pieces.SETTINGS,
        toolkits=pieces.choices(toolkits, "", "Choose a toolkit"),
    )


def matching(every: Iterable[queries.Summary], filters: Mapping[str, Any]) -> list[queries.Summary]:
    """Return the agents that the filter shows."""
    kind, loadout = filters["kind"], filters["loadout"]
    shown = []
    for summary in every:
        agent = summary.agent
        if (kind and agent.kind != kind) or (loadout and summary.loadout != loadout):
            continue
        if words.contains(filters["q"], agent.key, agent.title, agent.role, agent.description):
            shown.append(summary)
    return shown


def present(summary: queries.Summary, *, may_undo: bool = False) -> pieces.View:
    """Present an agent, in a list or as the header of its pages."""
    spent = summary.inventory.spent
    return pieces.View(
        key=summary.agent.key,
        role=summary.agent.role or summary.agent.title,
        profile=profile(summary.agent, summary.loadout),
        loadout=summary.loadout,
        protected=summary.agent.protected,
        archived=summary.agent.archived,
        active=words.number(spent.tools),
        total=words.number(summary.total),
        percent=round(100 * spent.tools / summary.total) if summary.total else 0,
        tokens=words.about(spent.tokens),
        shares=model_panel.shares(spent),
        last_change=audit_words.last_change(summary.last, may_undo),
        trouble=trouble(summary.inventory),
        budget=model_panel.meter(spent),
    )


def profile(agent: values.Agent, loadout: str) -> str:
    """Return where an agent's tools come from, switches aside."""
    if agent.loadout:
        return f"loadout {agent.loadout}"
    if agent.kind:
        return f"kind {agent.kind} → {loadout}" if loadout else f"kind {agent.kind}"
    return "no loadout"


def trouble(has: inventory.Inventory) -> str:
    """Return what needs attention, in two words."""
    if has.conflicts:
        return "conflict"
    if has.spent.is_exceeded:
        return "over budget"
    return "deferred by budget" if has.deferred else ""
