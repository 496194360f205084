"""The first page: what operators look up first, with links to where it is done."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

from django.urls import reverse
from django.utils import timezone

from toolbelt.control.catalog import unresolved
from toolbelt.control.reports import overview, queries, usage
from toolbelt.web.agents import view_model as agents
from toolbelt.web.kit import durations, entries, model, pieces, texts, words

DAYS = 30
MAX_AGENTS = 14
MAX_CONCERNS = 8
MAX_CHANGES = 6
MAX_ERROR_LENGTH = 160
_DEFERRED = "deferred by budget"
# The sparkline, in its own units.
STEP, HEIGHT = 10, 64


def page(*, may_see_calls: bool, may_undo: Callable[[queries.Entry], bool]) -> pieces.View:
    """Return the page."""
    today = timezone.localdate()
    first = today - dt.timedelta(days=DAYS - 1)
    loaded = overview.load(
        today=durations.midnight(today),
        most=MAX_CHANGES,
        most_agents=MAX_AGENTS,
        calls_since=durations.midnight(first) if may_see_calls else None,
    )
    troubled = [summary for summary in loaded.agents if agents.trouble(summary.inventory)]
    concerns = len(loaded.broken) + len(troubled) + len(loaded.waiting) + len(loaded.stale)
    concerns += (
        len(loaded.not_running)
        + bool(loaded.stopped)
        + len({missing.loadout for missing in loaded.unresolved})
    )
    count = len(loaded.agents)
    rest = loaded.today.total - len(loaded.today.entries)
    return pieces.View(
        configured=bool(loaded.agents),
        summary=f"{words.counted(count, 'agent')}, {words.tools(loaded.total)} in the catalog",
        concerns=tuple(itertools.islice(_concerns(loaded, troubled), MAX_CONCERNS)),
        more_concerns=f"and {words.number(concerns - MAX_CONCERNS)} more" if concerns > MAX_CONCERNS else "",
        entries=tuple(entries.present(entry, may_undo(entry)) for entry in loaded.today.entries),
        more_entries=f"{words.number(rest)} more today" if rest else "All changes",
        last=""
        if loaded.last is None
        else f"{entries.sentence(loaded.last)}, {words.moment(loaded.last.at).words}",
        usage=_usage(loaded.calls, first, today) if loaded.calls else None,
        may_see_calls=may_see_calls,
        agents=tuple(map(agents.present, loaded.listed)),
        more_agents=f"All {words.number(count)} agents" if count > MAX_AGENTS else "",
    )


def _concerns(loaded: overview.Overview, troubled: list[queries.Summary]) -> Iterator[pieces.View]:
    """Return what needs attention: first failures, then what waits for an operator, then what is only unusual.

    ``state`` is the shape beside it, and ``act`` what the link at ``url`` says.
    """
    for provider in loaded.broken:
        yield pieces.View(
            state="unavailable",
            title=f"{texts.visible(provider.plugin.title or provider.plugin.name)} has failed",
            about=texts.visible(words.cut(provider.error, MAX_ERROR_LENGTH)) or "Its tools are unavailable.",
            url=reverse("web:plugin", args=[provider.plugin.name]),
            act="View",
        )
    for absent in loaded.not_running:
        yield pieces.View(
            state="unavailable",
            title=f"{words.tools(len(absent.not_running))} of {texts.visible(absent.title or absent.name)} not running",
            about="No running process can run them. Restart Toolbelt's servers with the plugin listed, or turn it off.",
            url=reverse("web:plugin", args=[absent.name]),
            act="View",
        )
    troubled.sort(key=lambda summary: agents.trouble(summary.inventory) == _DEFERRED)
    yield from map(_of_agent, troubled)
    for plugin, count in loaded.waiting.items():
        yield pieces.View(
            state="discoverable",
            title=f"{words.tools(count)} of {texts.visible(plugin)} {'awaits' if count == 1 else 'await'} review",
            about="New or changed tools are unavailable until you approve them.",
            url=reverse("web:plugin", args=[plugin]) + "#review",
            act="Review",
        )
    yield from _stale(loaded.stale)
    yield from _unresolved(loaded.unresolved)
    if loaded.stopped:
        (kind, first), names = loaded.stopped[0], [name for _, name in loaded.stopped]
        count = len(names)
        yield pieces.View(
            state="denied",
            title=f"{count} {'entry' if count == 1 else 'entries'} blocked for everyone",
            about=words.listing(names),
            url=reverse(f"web:{kind}", args=[first]),
            act="View",
        )


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
    return " ".join(model.warnings(has.spent, len(has.deferred), has.conflicts))


def _budget(summary: queries.Summary) -> str:
    """Return how much there is of what the budget counts, and how much it allows."""
    spent, budget = summary.inventory.spent, summary.agent.budget
    if budget is None:
        return ""
    limits = [
        f"{words.number(now)} of {words.limit(most)} {unit}"
        for now, most, unit in (
            (spent.tools, budget.max_tools, "tools"),
            (spent.tokens, budget.max_tokens, "tokens"),
        )
        if most is not None
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
            about=f"{names}. " + ("Disabling them has no effect." if denies else "They bring no tools."),
            url=reverse("web:loadout", args=[loadout]),
            act="View",
        )


def _stale(every: Iterable[tuple[queries.Summary, Sequence[overview.Stale]]]) -> Iterator[pieces.View]:
    for summary, overrides in every:
        agent, count = summary.agent.key, len(overrides)
        reasons = [
            f"{stale.tool} ({'on' if stale.on else 'off'}: {overview.explain_stale(summary, stale)})"
            for stale in overrides
        ]
        yield pieces.View(
            state="dormant",
            title=f"{count} override{' has' if count == 1 else 's have'} no effect for {agent}",
            about=words.listing(reasons, 2),
            url=reverse("web:agent_access", args=[agent]) + "?show=overridden",
            act="View",
        )


def _usage(usage_by_day: Sequence[usage.OfDay], first: dt.date, last: dt.date) -> pieces.View | None:
    by_day = {usage.day: usage for usage in usage_by_day}
    days = [first + dt.timedelta(days=number) for number in range((last - first).days + 1)]
    calls = [by_day[day].calls if day in by_day else 0 for day in days]
    wrong = [by_day[day].refused + by_day[day].failed if day in by_day else 0 for day in days]
    most, total, errors = max(calls), sum(calls), sum(wrong)
    if not total:
        return None
    points = [_point(place, count, most) for place, count in enumerate(calls)]
    width = STEP * (len(days) - 1)
    busiest = days[calls.index(most)]
    before, week = sum(calls[-14:-7]), sum(calls[-7:])
    # A week with few calls is not compared with.
    change = f", {words.signed(round(100 * (week - before) / before))} %" if before >= 20 else ""
    return pieces.View(
        line=" ".join(points),
        area=" ".join([f"0,{HEIGHT}", *points, f"{width},{HEIGHT}"]),
        wrong=" ".join(_point(place, count, most) for place, count in enumerate(wrong)),
        width=width,
        height=HEIGHT,
        words=f"{words.number(total)} calls in {len(days)} days, the most on {busiest:%-d %B}: {words.number(most)}; "
        f"{words.number(errors)} with errors",
        first=f"{days[0]:%-d %b}",
        last="today",
        figures=(
            pieces.View(number=words.number(calls[-1]), about="calls today", is_key=False),
            pieces.View(number=words.number(week), about=f"in 7 days{change}", is_key=False),
            pieces.View(
                number=f"{100 * errors / total:.1f} %",
                about=f"errors in {len(days)} days",
                is_key=True,
            ),
        ),
    )


def _point(place: int, count: int, most: int) -> str:
    # Room for the line's own width at both ends.
    return f"{place * STEP},{HEIGHT - 2 - round((HEIGHT - 4) * count / most, 1)}"
