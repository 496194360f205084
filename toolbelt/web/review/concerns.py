"""What needs attention, in words, with links to the pages that resolve it."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from django.urls import reverse

from toolbelt.control.catalog import unresolved
from toolbelt.control.reports import attention, queries
from toolbelt.core import catalog
from toolbelt.web import agents
from toolbelt.web.kit import model_panel, pieces, texts, titles, words

MAX_ERROR_LENGTH = 160
_DEFERRED = "deferred by budget"
# Returns the view model of a line; pages show some of the lines, and count all.
Line = Callable[[], pieces.View]


def lines(report: attention.Attention) -> list[Line]:
    """Return what needs attention: blocks and failures, then tools to review, then unusual settings."""
    blocked = _each(_block, report.blocked) if len(report.blocked) < 2 else _each(_blocks, [report.blocked])
    return [*blocked, *_failures(report), *_reviews(report), *_unusual(report)]


def others(report: attention.Attention) -> list[Line]:
    """Return what needs attention besides the tools to review, with each block on a separate line."""
    return [*_each(_block, report.blocked), *_failures(report), *_unusual(report)]


def _failures(report: attention.Attention) -> list[Line]:
    """Return the failures, then the agents with a conflict or over budget, then those whose budget defers tools."""
    with_problem = [summary for summary in report.agents if agents.problem_label(summary.inventory)]
    with_problem.sort(key=lambda summary: agents.problem_label(summary.inventory) == _DEFERRED)
    return [
        *_each(_failed, report.failed_plugins),
        *_each(_not_running, report.not_running),
        *_each(_of_agent, with_problem),
    ]


def _unusual(report: attention.Attention) -> list[Line]:
    by_loadout = itertools.groupby(report.unresolved, operator.attrgetter("loadout"))
    return [
        *_each(_stale, report.ineffective_overrides),
        *_each(_unresolved, [(loadout, tuple(missing)) for loadout, missing in by_loadout]),
    ]


def _each(present: Callable[[Any], pieces.View], things: Iterable[Any]) -> list[Line]:
    return [functools.partial(present, thing) for thing in things]


def _line(state: str, title: str, about: str, url: str, action: str = "View") -> pieces.View:
    """Return one line: ``state`` is the shape beside it, ``action`` the label of the link to ``url``."""
    return pieces.View(state=state, title=title, about=about, url=url, action=action)


def _failed(failed: attention.FailedPlugin) -> pieces.View:
    plugin = failed.plugin
    return _line(
        "unavailable",
        f"{titles.of(plugin)} has failed",
        texts.visible(words.cut(failed.error, MAX_ERROR_LENGTH)) or "Its tools are unavailable.",
        reverse("web:plugin", args=[plugin.name]),
    )


def _not_running(plugin: catalog.Plugin) -> pieces.View:
    return _line(
        "unavailable",
        f"{words.tools(len(plugin.not_running))} of {titles.of(plugin)} not running",
        "No running process can run them. Restart Toolbelt's servers with the plugin listed, or turn it off.",
        reverse("web:plugin", args=[plugin.name]),
    )


def _reviews(report: attention.Attention) -> list[Line]:
    counts = [(report.stored.plugins[name], count) for name, count in report.to_review.items()]
    return _each(_review, counts)


def _review(waiting: tuple[catalog.Plugin, int]) -> pieces.View:
    plugin, count = waiting
    verb = "awaits" if count == 1 else "await"
    return _line(
        "discoverable",
        f"{words.tools(count)} of {titles.of(plugin)} {verb} review",
        "New or changed tools are unavailable until you approve them.",
        reverse("web:review", query={"plugin": plugin.name}),
        "Review",
    )


def _block(blocked: tuple[str, str]) -> pieces.View:
    kind, name = blocked
    title = f"{kind.capitalize()} {texts.visible(name)} is blocked for everyone"
    return _line(
        "denied", title, "No agent gets it, whatever its settings.", reverse(f"web:{kind}", args=[name])
    )


def _blocks(blocked: Sequence[tuple[str, str]]) -> pieces.View:
    title = f"{len(blocked)} entries blocked for everyone"
    names = words.listing([name for _, name in blocked])
    return _line("denied", title, names, f"{reverse('web:review')}#attention")


def _of_agent(summary: queries.Summary) -> pieces.View:
    problem = agents.problem_label(summary.inventory)
    return _line(
        "discoverable" if problem == _DEFERRED else "unavailable",
        f"{titles.of(summary.agent)}: {problem}",
        _budget(summary) if "budget" in problem else _warnings(summary),
        reverse("web:agent_access", args=[summary.agent.key]),
    )


def _warnings(summary: queries.Summary) -> str:
    contents = summary.inventory
    return " ".join(model_panel.warnings(contents.spent, len(contents.deferred), contents.conflicts))


def _budget(summary: queries.Summary) -> str:
    """Return how much of the budget is used, and its limits."""
    spent, budget = summary.inventory.spent, summary.agent.budget
    if budget is None:
        return ""
    limits = [
        f"{words.number(now)} of {words.limit(maximum)} {unit}"
        for now, maximum, unit in (
            (spent.tools, budget.max_tools, "tools"),
            (spent.tokens, budget.max_tokens, "tokens"),
        )
        if maximum is not None
    ]
    return f"{', '.join(limits)}. {_warnings(summary)}"


def _unresolved(of_loadout: tuple[str, Sequence[unresolved.Unresolved]]) -> pieces.View:
    loadout, missing_names = of_loadout
    denies = any(missing.field == "disabled" for missing in missing_names)
    names = words.listing(tuple(dict.fromkeys(missing.name for missing in missing_names)))
    return _line(
        "denied" if denies else "discoverable",
        f"{loadout}: names that do not exist",
        f"{names}. {'Disabling them has no effect.' if denies else 'They add no tools.'}",
        reverse("web:loadout", args=[loadout]),
    )


def _stale(of_agent: tuple[queries.Summary, Sequence[attention.IneffectiveOverride]]) -> pieces.View:
    summary, overrides = of_agent
    agent, count = summary.agent, len(overrides)
    reasons = [
        f"{stale.tool} ({'on' if stale.on else 'off'}: {attention.explain_ineffective(summary, stale)})"
        for stale in overrides
    ]
    return _line(
        "dormant",
        f"{count} override{' has' if count == 1 else 's have'} no effect for {titles.of(agent)}",
        words.listing(reasons, 2),
        reverse("web:agent_access", args=[agent.key], query={"show": "overridden"}),
    )
