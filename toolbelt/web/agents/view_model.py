"""The list of agents, and the header of the pages of one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from django.urls import reverse
from django.utils.http import urlencode

from toolbelt.control.reports import queries
from toolbelt.core import agents as values
from toolbelt.core import inventory
from toolbelt.web.kit import entries, model, notices, paging, pieces, words

_NEVER = datetime.min.replace(tzinfo=UTC)
_SORTS: Mapping[str, Callable[[queries.Summary], Any]] = {
    "agent": lambda one: one.agent.key.casefold(),
    "profile": lambda one: (one.loadout, one.agent.kind),
    "tools": lambda one: one.inventory.spent.tools,
    "tokens": lambda one: one.inventory.spent.tokens,
    "change": lambda one: one.last.at if one.last else _NEVER,
}
_COLUMNS = (
    ("agent", "Agent"),
    ("profile", "Loadout or kind"),
    ("tools", "Tools"),
    ("tokens", "Tokens"),
    ("change", "Last change"),
)
_CHOICES = (
    ("", "Default order"),
    ("agent", "Name"),
    ("-tools", "Most tools"),
    ("-tokens", "Most tokens"),
    ("-change", "Last changed"),
)


def page(
    filters: Mapping[str, Any],
    path: str,
    *,
    may_flip: Callable[[str], bool] = lambda agent: False,
    notice: notices.Notice | None = None,
) -> pieces.View:
    """Fill the list, narrowed and sorted as the form says; ``path`` is the page's own, ``may_flip`` says for which
    agents the reader may switch a toolkit.
    """
    every = list(queries.summaries(archived=bool(filters["archived"])))
    found = matching(every, filters)
    sort = filters["sort"] if str(filters["sort"]).lstrip("-") in _SORTS else ""
    if sort.endswith("change"):
        found = list(queries.with_last(found))
    if sort:
        found.sort(key=_SORTS[sort.lstrip("-")], reverse=sort.startswith("-"))
    total = every[0].total if every else 0
    shown = paging.part(found, filters["offset"])
    return pieces.View(
        agents=tuple(line(one) for one in queries.with_last(shown.items)),
        columns=paging.columns(dict(_COLUMNS), filters, sort, path),
        query=filters["q"],
        kinds=pieces.choices(((name, name) for name in values.KINDS), filters["kind"], "Any kind"),
        loadouts=pieces.choices(
            ((name, name) for name in sorted({one.loadout for one in every if one.loadout})),
            filters["loadout"],
            "Any loadout",
        ),
        sorts=pieces.choices(_CHOICES, sort),
        narrowed=len(found) != len(every),
        archived=bool(filters["archived"]),
        configured=bool(every) or queries.is_any_agent(),
        matches=f"{words.number(len(found))} {'archived ' if filters['archived'] else ''}"
        f"agent{'' if len(found) == 1 else 's'}"
        + (f", {words.tools(total)} in the catalog" if every else ""),
        pages=shown.pages(filters, path),
        here=f"{path}?{urlencode({key: value for key, value in filters.items() if value})}",
        bulk=None
        if filters["archived"]
        else _bulk([one for one in found if may_flip(one.agent.key)], filters),
        notice=notice,
    )


def _bulk(summaries: Sequence[queries.Summary], filters: Mapping[str, Any]) -> pieces.Bar | None:
    toolkits = list(summaries[0].holder.catalog.toolkits) if summaries else []
    if not toolkits:
        return None
    return pieces.Bar(
        action=reverse("web:bulk_agents"),
        fields=paging.hidden(filters, ("sort", "offset")),
        count=f"For all {words.number(len(summaries))} matching agents"
        if len(summaries) > 1
        else "For the agent shown",
        what="toolkits",
        words=(("true", "Turn on"), ("false", "Turn off"), ("unset", "Reset to default")),
        toolkits=pieces.choices(((name, name) for name in toolkits), "", "Choose a toolkit"),
    )


def matching(every: Iterable[queries.Summary], filters: Mapping[str, Any]) -> list[queries.Summary]:
    """Return the agents that the filter shows."""
    return [one for one in every if _fits(one, filters)]


def line(summary: queries.Summary) -> pieces.View:
    """Present one agent of the list."""
    spent = summary.inventory.spent
    return pieces.View(
        key=summary.agent.key,
        role=summary.agent.role or summary.agent.title,
        profile=profile(summary.agent, summary.loadout),
        protected=summary.agent.protected,
        archived=summary.agent.archived,
        active=words.number(spent.tools),
        total=words.number(summary.total),
        percent=round(100 * spent.tools / summary.total) if summary.total else 0,
        tokens=words.about(spent.tokens),
        shares=model.shares(spent),
        last_change=entries.last_change(summary.last, may_undo=False),
        trouble=trouble(summary.inventory),
        budget=model.meter(spent),
    )


def header(summary: queries.Summary, *, may_undo: bool = False) -> pieces.View:
    """Fill what stands above all pages of one agent."""
    spent = summary.inventory.spent
    return pieces.View(
        key=summary.agent.key,
        role=summary.agent.role or summary.agent.title,
        profile=profile(summary.agent, summary.loadout),
        protected=summary.agent.protected,
        archived=summary.agent.archived,
        active=words.number(spent.tools),
        total=words.number(summary.total),
        tokens=words.about(spent.tokens),
        shares=model.shares(spent),
        last_change=entries.last_change(summary.last, may_undo=may_undo),
        budget=model.meter(spent),
    )


def profile(agent: values.Agent, loadout: str) -> str:
    """Return where an agent's tools come from, switches aside."""
    if agent.loadout:
        return f"loadout {agent.loadout}"
    if agent.kind:
        return f"kind {agent.kind} → {loadout}" if loadout else f"kind {agent.kind}"
    return "no loadout"


def trouble(has: inventory.Inventory) -> str:
    """Name what needs attention, in two words."""
    if has.conflicts:
        return "conflict"
    if has.spent.is_passed:
        return "over budget"
    return "deferred by budget" if has.deferred else ""


def _fits(summary: queries.Summary, filters: Mapping[str, Any]) -> bool:
    agent = summary.agent
    texts = (agent.key, agent.title, agent.role, agent.description)
    return (
        (not filters["q"] or any(filters["q"].casefold() in text.casefold() for text in texts))
        and (not filters["kind"] or agent.kind == filters["kind"])
        and (not filters["loadout"] or summary.loadout == filters["loadout"])
    )
