"""How is the list of agents filled?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from django.urls import reverse
from django.utils.http import urlencode

from toolbelt.control import queries
from toolbelt.core import agents as values
from toolbelt.core import inventory
from toolbelt.web import words
from toolbelt.web.pages import entries, model, paging
from toolbelt.web.presenters import agents, answers, bulk, pieces

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
    ("", "In order"),
    ("agent", "By name"),
    ("-tools", "Most tools first"),
    ("-tokens", "Most tokens first"),
    ("-change", "Last changed first"),
)


def page(
    said: Mapping[str, Any],
    path: str,
    *,
    may_flip: Callable[[str], bool] = lambda agent: False,
    notice: answers.Notice | None = None,
) -> agents.AgentsPage:
    """Fill the list, narrowed and sorted as the form says; ``path`` is the page's own, ``may_flip`` says for which
    agents the reader may switch a toolkit.
    """
    every = list(queries.summaries(archived=bool(said["archived"])))
    found = matching(every, said)
    sort = said["sort"] if str(said["sort"]).lstrip("-") in _SORTS else ""
    if sort.endswith("change"):
        found = list(queries.with_last(found))
    if sort:
        found.sort(key=_SORTS[sort.lstrip("-")], reverse=sort.startswith("-"))
    total = every[0].total if every else 0
    shown = paging.part(found, said["offset"])
    return agents.AgentsPage(
        agents=tuple(line(one) for one in queries.with_last(shown.items)),
        columns=tuple(_column(name, label, said, sort, path) for name, label in _COLUMNS),
        query=said["q"],
        kinds=_choices("Any kind", list(values.KINDS), said["kind"]),
        loadouts=_choices(
            "Any loadout", sorted({one.loadout for one in every if one.loadout}), said["loadout"]
        ),
        sorts=tuple(
            pieces.Choice(value=value, label=label, chosen=value == sort) for value, label in _CHOICES
        ),
        narrowed=len(found) != len(every),
        archived=bool(said["archived"]),
        configured=bool(every) or queries.is_any_agent(),
        matches=f"{words.number(len(found))} {'archived ' if said['archived'] else ''}"
        f"agent{'' if len(found) == 1 else 's'}"
        + (f", {words.tools(total)} in the catalog" if every else ""),
        pages=shown.pages(said, path),
        here=f"{path}?{urlencode({key: value for key, value in said.items() if value})}",
        bulk=None if said["archived"] else _bulk([one for one in found if may_flip(one.agent.key)], said),
        notice=notice,
    )


def _bulk(found: Sequence[queries.Summary], said: Mapping[str, Any]) -> bulk.Bar | None:
    toolkits = list(found[0].holder.catalog.toolkits) if found else []
    if not toolkits:
        return None
    return bulk.Bar(
        action=reverse("web:bulk_agents"),
        fields=tuple(
            pieces.Field(name=name, value=str(value))
            for name, value in said.items()
            if value and name not in ("sort", "offset")
        ),
        count=f"For all {words.number(len(found))} agents that fit"
        if len(found) > 1
        else "For the agent shown",
        what="toolkits",
        words=(("true", "On"), ("false", "Off"), ("unset", "Follow defaults")),
        toolkits=_choices("A toolkit", toolkits, ""),
    )


def matching(every: Iterable[queries.Summary], said: Mapping[str, Any]) -> list[queries.Summary]:
    """Give the agents that the filter shows."""
    return [one for one in every if _fits(one, said)]


def line(one: queries.Summary) -> agents.AgentLine:
    """Present one agent of the list."""
    spent = one.inventory.spent
    return agents.AgentLine(
        key=one.agent.key,
        role=one.agent.role or one.agent.title,
        profile=profile(one.agent, one.loadout),
        protected=one.agent.protected,
        archived=one.agent.archived,
        active=words.number(spent.tools),
        total=words.number(one.total),
        percent=round(100 * spent.tools / one.total) if one.total else 0,
        tokens=words.about(spent.tokens),
        last_change=entries.last_change(one.last, may_undo=False),
        trouble=trouble(one.inventory),
        budget=model.meter(spent),
    )


def header(one: queries.Summary, *, may_undo: bool = False) -> agents.AgentHeader:
    """Fill what stands above all pages of one agent."""
    spent = one.inventory.spent
    return agents.AgentHeader(
        key=one.agent.key,
        role=one.agent.role or one.agent.title,
        profile=profile(one.agent, one.loadout),
        protected=one.agent.protected,
        archived=one.agent.archived,
        active=words.number(spent.tools),
        total=words.number(one.total),
        tokens=words.about(spent.tokens),
        last_change=entries.last_change(one.last, may_undo=may_undo),
        budget=model.meter(spent),
    )


def profile(agent: values.Agent, loadout: str) -> str:
    """Say where an agent's tools come from, switches aside."""
    if agent.loadout:
        return f"loadout {agent.loadout}"
    if agent.kind:
        return f"kind {agent.kind} → {loadout}" if loadout else f"kind {agent.kind}"
    return "no loadout"


def trouble(has: inventory.Inventory) -> str:
    """Name what needs an eye, in two words."""
    if has.conflicts:
        return "conflict"
    if has.spent.is_passed:
        return "over budget"
    return "deferred by budget" if has.deferred else ""


def _fits(one: queries.Summary, said: Mapping[str, Any]) -> bool:
    agent = one.agent
    texts = (agent.key, agent.title, agent.role, agent.description)
    return (
        (not said["q"] or any(said["q"].casefold() in text.casefold() for text in texts))
        and (not said["kind"] or agent.kind == said["kind"])
        and (not said["loadout"] or one.loadout == said["loadout"])
    )


def _choices(anything: str, names: list[str], chosen: str) -> tuple[pieces.Choice, ...]:
    first = pieces.Choice(value="", label=anything, chosen=not chosen)
    return (first, *(pieces.Choice(value=name, label=name, chosen=name == chosen) for name in names))


def _column(name: str, label: str, said: Mapping[str, Any], sort: str, path: str) -> agents.Column:
    wanted = f"-{name}" if sort == name else name
    kept = {key: value for key, value in said.items() if value and key not in ("sort", "offset")}
    order = "ascending" if sort == name else "descending" if sort == f"-{name}" else ""
    return agents.Column(
        name=name, label=label, url=f"{path}?{urlencode({**kept, 'sort': wanted})}", order=order
    )
