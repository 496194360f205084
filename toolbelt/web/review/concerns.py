"""What needs attention, in words, with links to where it is settled."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

from django.urls import reverse

from toolbelt.control.catalog import unresolved
from toolbelt.control.reports import attention, queries
from toolbelt.web import agents
from toolbelt.web.kit import model_panel, pieces, texts, words

MAX_ERROR_LENGTH = 160
_DEFERRED = "deferred by budget"


def count(noticed: attention.Attention) -> int:
    """Return how many lines :func:`lines` yields."""
    others = count_others(noticed) - len(noticed.blocked)
    return others + len(noticed.to_review) + bool(noticed.blocked)


def count_others(noticed: attention.Attention) -> int:
    """Return how many lines :func:`other_concerns` yields."""
    return (
        len(noticed.broken)
        + len(noticed.not_running)
        + len(_troubled(noticed))
        + len(noticed.blocked)
        + len(noticed.stale)
        + len({missing.loadout for missing in noticed.unresolved})
    )


def lines(noticed: attention.Attention) -> Iterator[pieces.View]:
    """Yield what needs attention: blocks and failures, then what waits for an operator, then what is unusual.

    ``state`` is the shape beside it, and ``act`` what the link at ``url`` says.
    """
    if len(noticed.blocked) == 1:
        yield from _blocked(noticed)
    elif noticed.blocked:
        yield pieces.View(
            state="denied",
            title=f"{len(noticed.blocked)} entries blocked for everyone",
            about=words.listing([name for _, name in noticed.blocked]),
            url=f"{reverse('web:review')}#attention",
            act="View",
        )
    yield from _failures(noticed)
    yield from map(_of_agent, _troubled(noticed))
    yield from _reviews(noticed)
    yield from _stale(noticed.stale)
    yield from _unresolved(noticed.unresolved)


def other_concerns(noticed: attention.Attention) -> Iterator[pieces.View]:
    """Yield what needs attention beside the tools to review, with each block on its own."""
    yield from _blocked(noticed)
    yield from _failures(noticed)
    yield from map(_of_agent, _troubled(noticed))
    yield from _stale(noticed.stale)
    yield from _unresolved(noticed.unresolved)


def _failures(noticed: attention.Attention) -> Iterator[pieces.View]:
    for provider in noticed.broken:
        yield pieces.View(
            state="unavailable",
            title=f"{texts.visible(provider.plugin.title or provider.plugin.name)} has failed",
            about=texts.visible(words.cut(provider.error, MAX_ERROR_LENGTH)) or "Its tools are unavailable.",
            url=reverse("web:plugin", args=[provider.plugin.name]),
            act="View",
        )
    for absent in noticed.not_running:
        yield pieces.View(
            state="unavailable",
            title=f"{words.tools(len(absent.not_running))} of {texts.visible(absent.title or absent.name)} not running",
            about="No running process can run them. Restart Toolbelt's servers with the plugin listed, or turn it off.",
            url=reverse("web:plugin", args=[absent.name]),
            act="View",
        )


def _reviews(noticed: attention.Attention) -> Iterator[pieces.View]:
    for plugin, waiting in noticed.to_review.items():
        yield pieces.View(
            state="discoverable",
            title=f"{words.tools(waiting)} of {texts.visible(plugin)} {'awaits' if waiting == 1 else 'await'} review",
            about="New or changed tools are unavailable until you approve them.",
            url=reverse("web:review", query={"plugin": plugin}),
            act="Review",
        )


def _blocked(noticed: attention.Attention) -> Iterator[pieces.View]:
    for kind, name in noticed.blocked:
        yield pieces.View(
            state="denied",
            title=f"{kind.capitalize()} {texts.visible(name)} is blocked for everyone",
            about="No agent gets it, whatever its settings.",
            url=reverse(f"web:{kind}", args=[name]),
            act="View",
        )


def _troubled(noticed: attention.Attention) -> list[queries.Summary]:
    """Return the agents with a conflict or over their budget, then those whose budget defers tools."""
    troubled = [summary for summary in noticed.agents if agents.trouble(summary.inventory)]
    return sorted(troubled, key=lambda summary: agents.trouble(summary.inventory) == _DEFERRED)


def _of_agent(summary: queries.Summary) -> pieces.View:
    trouble = agents.trouble(summary.inventory)
    return pieces.View(
        state="discoverable" if trouble == _DEFERRED else "unavailable",
        title=f"{summary.agent.key}: {trouble}",
        about=_budget(summary) if "budget" in trouble else _warnings(summary),
        url=reverse("web:agent_access", args=[summary.agent.key]),
        act="View",
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


def _unresolved(every: Iterable[unresolved.Unresolved]) -> Iterator[pieces.View]:
    for loadout, of_loadout in itertools.groupby(every, lambda name: name.loadout):
        listed = tuple(of_loadout)
        denies = any(missing.field == "disabled" for missing in listed)
        names = words.listing(tuple(dict.fromkeys(missing.name for missing in listed)))
        yield pieces.View(
            state="denied" if denies else "discoverable",
            title=f"{loadout}: names that do not exist",
            about=f"{names}. " + ("Disabling them has no effect." if denies else "They add no tools."),
            url=reverse("web:loadout", args=[loadout]),
            act="View",
        )


def _stale(every: Iterable[tuple[queries.Summary, Sequence[attention.Stale]]]) -> Iterator[pieces.View]:
    for summary, overrides in every:
        agent, count = summary.agent.key, len(overrides)
        reasons = [
            f"{stale.tool} ({'on' if stale.on else 'off'}: {attention.explain_stale(summary, stale)})"
            for stale in overrides
        ]
        yield pieces.View(
            state="dormant",
            title=f"{count} override{' has' if count == 1 else 's have'} no effect for {agent}",
            about=words.listing(reasons, 2),
            url=reverse("web:agent_access", args=[agent]) + "?show=overridden",
            act="View",
        )
