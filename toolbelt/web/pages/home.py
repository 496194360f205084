"""How is the first page filled? With what an operator would look up first, each a click away from where it is done."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

from django.urls import reverse
from django.utils import timezone

from toolbelt.control import overview, queries, usage
from toolbelt.web import words
from toolbelt.web.pages import agents, entries, model, texts
from toolbelt.web.presenters import answers, home

DAYS = 30
MOST_AGENTS = 14
MOST_CONCERNS = 8
MOST_CHANGES = 6
LONGEST_ERROR = 160
_DEFERRED = "deferred by budget"
# The sparkline, in its own units.
STEP, HEIGHT = 10, 64


def page(
    *,
    here: str,
    notice: answers.Notice | None,
    may_see_calls: bool,
    may_undo: Callable[[queries.Entry], bool],
) -> home.HomePage:
    """Fill the page."""
    today = timezone.localdate()
    first = today - dt.timedelta(days=DAYS - 1)
    found = overview.now(
        today=_midnight(today),
        most=MOST_CHANGES,
        most_agents=MOST_AGENTS,
        calls_since=_midnight(first) if may_see_calls else None,
    )
    troubled = [one for one in found.agents if agents.trouble(one.inventory)]
    concerns = len(found.broken) + len(troubled) + len(found.waiting) + len(found.stale) + bool(found.stopped)
    count = len(found.agents)
    rest = found.today.total - len(found.today.entries)
    return home.HomePage(
        configured=bool(found.agents),
        summary=f"{words.number(count)} agent{'' if count == 1 else 's'}, {words.tools(found.total)} in the catalog",
        concerns=tuple(itertools.islice(_concerns(found, troubled), MOST_CONCERNS)),
        more_concerns=f"and {words.number(concerns - MOST_CONCERNS)} more"
        if concerns > MOST_CONCERNS
        else "",
        entries=tuple(entries.present(entry, may_undo(entry)) for entry in found.today.entries),
        more_entries=f"{words.number(rest)} more today" if rest else "All changes",
        last="" if found.last is None else f"{entries.told(found.last)}, {words.moment(found.last.at).words}",
        usage=_usage(found.calls, first, today) if found.calls else None,
        may_see_calls=may_see_calls,
        agents=tuple(agents.line(one) for one in found.listed),
        more_agents=f"All {words.number(count)} agents" if count > MOST_AGENTS else "",
        notice=notice,
        here=here,
    )


def _midnight(day: dt.date) -> dt.datetime:
    return timezone.make_aware(dt.datetime.combine(day, dt.time.min))


def _concerns(found: overview.Overview, troubled: Iterable[queries.Summary]) -> Iterator[home.Concern]:
    """Tell what needs an eye: first what is broken, then what waits, then what is merely odd."""
    for one in found.broken:
        yield home.Concern(
            state="unavailable",
            title=f"{texts.visible(one.plugin.title or one.plugin.name)} has failed",
            about=texts.visible(words.cut(one.error, LONGEST_ERROR)) or "Its tools are unavailable.",
            url=reverse("web:plugin", args=[one.plugin.name]),
            act="Look",
        )
    by_weight = sorted(troubled, key=lambda one: agents.trouble(one.inventory) == _DEFERRED)
    yield from map(_of_agent, by_weight)
    for plugin, count in found.waiting.items():
        yield home.Concern(
            state="discoverable",
            title=f"{words.tools(count)} of {texts.visible(plugin)} {'waits' if count == 1 else 'wait'} for a look",
            about="New or changed, and off for everyone until somebody has approved.",
            url=reverse("web:plugin", args=[plugin]) + "#review",
            act="Review",
        )
    yield from _stale(found.stale)
    if found.stopped:
        names = [name for _, name in found.stopped]
        count = len(names)
        yield home.Concern(
            state="denied",
            title=f"{count} thing{' is' if count == 1 else 's are'} stopped for everyone",
            about=words.listing(names),
            url=_stopped_url(*found.stopped[0]),
            act="Look",
        )


def _stopped_url(kind: str, name: str) -> str:
    return reverse(f"web:{kind}", args=[name])


def _of_agent(one: queries.Summary) -> home.Concern:
    trouble = agents.trouble(one.inventory)
    return home.Concern(
        state="discoverable" if trouble == _DEFERRED else "unavailable",
        title=f"{one.agent.key}: {trouble}",
        about=_budget(one) if "budget" in trouble else _warnings(one),
        url=reverse("web:agent_access", args=[one.agent.key]),
        act="Look",
    )


def _warnings(one: queries.Summary) -> str:
    has = one.inventory
    return " ".join(model.warnings(has.spent, len(has.deferred), has.conflicts))


def _budget(one: queries.Summary) -> str:
    """Say how much there is of what the budget counts, and how much it allows."""
    spent, budget = one.inventory.spent, one.agent.budget
    if budget is None:
        return ""
    told = [
        f"{words.number(now)} of {words.limit(most)} {unit}"
        for now, most, unit in (
            (spent.tools, budget.max_tools, "tools"),
            (spent.tokens, budget.max_tokens, "tokens"),
        )
        if most is not None
    ]
    return f"{', '.join(told)}. {_warnings(one)}"


def _stale(every: Iterable[tuple[queries.Summary, Sequence[overview.Stale]]]) -> Iterator[home.Concern]:
    for summary, found in every:
        agent, count = summary.agent.key, len(found)
        told = [
            f"{one.tool} ({'on' if one.on else 'off'}: {overview.because(summary, one)})" for one in found
        ]
        yield home.Concern(
            state="dormant",
            title=f"{count} override{' does' if count == 1 else 's do'} nothing for {agent}",
            about=words.listing(told, 2),
            url=reverse("web:agent_access", args=[agent]) + "?show=overridden",
            act="Look",
        )


def _usage(found: Sequence[usage.OfDay], first: dt.date, last: dt.date) -> home.Usage | None:
    by_day = {one.day: one for one in found}
    days = [first + dt.timedelta(days=number) for number in range((last - first).days + 1)]
    calls = [by_day[day].calls if day in by_day else 0 for day in days]
    wrong = [by_day[day].refused + by_day[day].failed if day in by_day else 0 for day in days]
    most, total, errors = max(calls), sum(calls), sum(wrong)
    if not total:
        return None
    points = [_point(place, count, most) for place, count in enumerate(calls)]
    width = STEP * (len(days) - 1)
    busiest = days[calls.index(most)]
    return home.Usage(
        line=" ".join(points),
        area=" ".join([f"0,{HEIGHT}", *points, f"{width},{HEIGHT}"]),
        wrong=" ".join(_point(place, count, most) for place, count in enumerate(wrong)),
        width=width,
        height=HEIGHT,
        words=f"{words.number(total)} calls in {len(days)} days, most on {busiest:%-d %B}: {words.number(most)}; "
        f"{words.number(errors)} with an error",
        first=f"{days[0]:%-d %b}",
        last="today",
        figures=(
            home.Figure(number=words.number(calls[-1]), about="calls today"),
            home.Figure(number=words.number(sum(calls[-7:])), about=f"in 7 days{_compared(calls)}"),
            home.Figure(
                number=f"{100 * errors / total:.1f} %",
                about=f"with an error, in {len(days)} days",
                is_key=True,
            ),
        ),
    )


def _compared(calls: Sequence[int]) -> str:
    """Compare the last week with the one before, where that had enough to compare with."""
    before, now = sum(calls[-14:-7]), sum(calls[-7:])
    return f", {words.signed(round(100 * (now - before) / before))} %" if before >= 20 else ""


def _point(place: int, count: int, most: int) -> str:
    # Room for the line's own width at both ends.
    return f"{place * STEP},{HEIGHT - 2 - round((HEIGHT - 4) * count / most, 1)}"
