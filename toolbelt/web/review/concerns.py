"""What needs attention, in words, with links to where it is settled."""

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
from toolbelt.web.kit import model_panel, pieces, texts, words

MAX_ERROR_LENGTH = 160
_DEFERRED = "deferred by budget"
# Presents a line when it is called: pages show some of the lines, and count all.
Line = Callable[[], pieces.View]


def lines(noticed: attention.Attention) -> list[Line]:
    """Return what needs attention: blocks and failures, then what awaits an operator, then what is unusual."""
    blocked = (
        _each(_block, noticed.blocked) if len(noticed.blocked) < 2 else _each(_blocks, [noticed.blocked])
    )
    return [*blocked, *_failures(noticed), *_each(_review, noticed.to_review.items()), *_unusual(noticed)]


def others(noticed: attention.Attention) -> list[Line]:
    """Return what needs attention beside the tools to review, with each block on its own."""
    return [*_each(_block, noticed.blocked), *_failures(noticed), *_unusual(noticed)]


def _failures(noticed: attention.Attention) -> list[Line]:
    """Return what has failed, then the agents with a conflict or over their budget, then those whose budget defers
    tools.
    """
    troubled = [summary for summary in noticed.agents if agents.trouble(summary.inventory)]
    troubled.sort(key=lambda summary: agents.trouble(summary.inventory) == _DEFERRED)
    return [
        *_each(_failed, noticed.failed_plugins),
        *_each(_not_running, noticed.not_running),
        *_each(_of_agent, troubled),
    ]


def _unusual(noticed: attention.Attention) -> list[Line]:
    by_loadout = itertools.groupby(noticed.unresolved, operator.attrgetter("loadout"))
    return [
        *_each(_stale, noticed.ineffective_overrides),
        *_each(_unresolved, [(loadout, tuple(missing)) for loadout, missing in by_loadout]),
    ]


def _each(present: Callable[[Any], pieces.View], things: Iterable[Any]) -> list[Line]:
    return [functools.partial(present, thing) for thing in things]


def _line(state: str, title: str, about: str, url: str, act: str = "View") -> pieces.View:
    """Return one line: ``state`` is the shape beside it, and ``act`` what the link at ``url`` says."""
    return pieces.View(state=state, title=title, about=about, url=url, act=act)


def _failed(failed: attention.FailedPlugin) -> pieces.View:
    plugin = failed.plugin
    return _line(
        "unavailable",
        f"{texts.visible(plugin.title or plugin.name)} has failed",
        texts.visible(words.cut(failed.error, MAX_ERROR_LENGTH)) or "Its tools are unavailable.",
        reverse("web:plugin", args=[plugin.name]),
    )


def _not_running(plugin: catalog.Plugin) -> pieces.View:
    return _line(
        "unavailable",
        f"{words.tools(len(plugin.not_running))} of {texts.visible(plugin.title or plugin.name)} not running",
        "No running process can run them. Restart Toolbelt's servers with the plugin listed, or turn it off.",
        reverse("web:plugin", args=[plugin.name]),
    )


def _review(waiting: tuple[str, int]) -> pieces.View:
    plugin, count = waiting
    return _line(
        "discoverable",
        f"{words.tools(count)} of {texts.visible(plugin)} {'awaits' if count == 1 else 'await'} review",
        "New or changed tools are unavailable until you approve them.",
        reverse("web:review", query={"plugin": plugin}),
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
    trouble = agents.trouble(summary.inventory)
    return _line(
        "discoverable" if trouble == _DEFERRED else "unavailable",
        f"{summary.agent.key}: {trouble}",
        _budget(summary) if "budget" in trouble else _warnings(summary),
        reverse("web:agent_access", args=[summary.agent.key]),
    )


def _warnings(summary: queries.Summary) -> str:
    has = summary.inventory
    return " ".join(model_panel.warnings(has.spent, len(has.deferred), has.conflicts))


def _budget(summary: queries.Summary) -> str:
    """Return how much there is of what the budget counts, and how much it allows."""
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
    loadout, listed = of_loadout
    denies = any(missing.field == "disabled" for missing in listed)
    names = words.listing(tuple(dict.fromkeys(missing.name for missing in listed)))
    return _line(
        "denied" if denies else "discoverable",
        f"{loadout}: names that do not exist",
        f"{names}. {'Disabling them has no effect.' if denies else 'They add no tools.'}",
        reverse("web:loadout", args=[loadout]),
    )


def _stale(of_agent: tuple[queries.Summary, Sequence[attention.IneffectiveOverride]]) -> pieces.View:
    summary, overrides = of_agent
    agent, count = summary.agent.key, len(overrides)
    reasons = [
        f"{stale.tool} ({'on' if stale.on else 'off'}: {attention.explain_ineffective(summary, stale)})"
        for stale in overrides
    ]
    return _line(
        "dormant",
        f"{count} override{' has' if count == 1 else 's have'} no effect for {agent}",
        words.listing(reasons, 2),
        reverse("web:agent_access", args=[agent], query={"show": "overridden"}),
    )
