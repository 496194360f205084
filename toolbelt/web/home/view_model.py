"""The first page: what operators look up first, with links to where it is done."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils import timezone

from toolbelt.control.catalog import unresolved
from toolbelt.control.reports import overview, queries, usage
from toolbelt.web.agents import view_model as agents
from toolbelt.web.kit import entries, model, pieces, texts, words


@dataclass(frozen=True, slots=True, kw_only=True)
class Concern:
    """Something that needs attention. `state` is the shape beside it ("unavailable", "denied", …); `act` is what the
    link at `url` says.
    """

    state: str
    title: str
    about: str
    url: str
    act: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number under the sparkline, and what it counts. `is_key`: it says which of the lines that is."""

    number: str
    about: str
    is_key: bool = False


DAYS = 30
MAX_AGENTS = 14
MAX_CONCERNS = 8
MAX_CHANGES = 6
MAX_ERROR_LENGTH = 160
_DEFERRED = "deferred by budget"
# The sparkline, in its own units.
STEP, HEIGHT = 10, 64


def page(*, may_see_calls: bool, may_undo: Callable[[queries.Entry], bool], **frame: Any) -> pieces.View:
    """Fill the page."""
    today = timezone.localdate()
    first = today - dt.timedelta(days=DAYS - 1)
    found = overview.load(
        today=_midnight(today),
        most=MAX_CHANGES,
        most_agents=MAX_AGENTS,
        calls_since=_midnight(first) if may_see_calls else None,
    )
    troubled = [one for one in found.agents if agents.trouble(one.inventory)]
    concerns = len(found.broken) + len(troubled) + len(found.waiting) + len(found.stale) + bool(found.stopped)
    concerns += len({one.loadout for one in found.unresolved})
    count = len(found.agents)
    rest = found.today.total - len(found.today.entries)
    return pieces.View(
        configured=bool(found.agents),
        summary=f"{words.number(count)} agent{'' if count == 1 else 's'}, {words.tools(found.total)} in the catalog",
        concerns=tuple(itertools.islice(_concerns(found, troubled), MAX_CONCERNS)),
        more_concerns=f"and {words.number(concerns - MAX_CONCERNS)} more" if concerns > MAX_CONCERNS else "",
        entries=tuple(entries.present(entry, may_undo(entry)) for entry in found.today.entries),
        more_entries=f"{words.number(rest)} more today" if rest else "All changes",
        last=""
        if found.last is None
        else f"{entries.sentence(found.last)}, {words.moment(found.last.at).words}",
        usage=_usage(found.calls, first, today) if found.calls else None,
        may_see_calls=may_see_calls,
        agents=tuple(agents.line(one) for one in found.listed),
        more_agents=f"All {words.number(count)} agents" if count > MAX_AGENTS else "",
        **frame,
    )


def _midnight(day: dt.date) -> dt.datetime:
    return timezone.make_aware(dt.datetime.combine(day, dt.time.min))


def _concerns(overview_: overview.Overview, troubled: Iterable[queries.Summary]) -> Iterator[Concern]:
    """Tell what needs attention: first what is broken, then what waits, then what is merely odd."""
    for one in overview_.broken:
        yield Concern(
            state="unavailable",
            title=f"{texts.visible(one.plugin.title or one.plugin.name)} has failed",
            about=texts.visible(words.cut(one.error, MAX_ERROR_LENGTH)) or "Its tools are unavailable.",
            url=reverse("web:plugin", args=[one.plugin.name]),
            act="View",
        )
    by_weight = sorted(troubled, key=lambda one: agents.trouble(one.inventory) == _DEFERRED)
    yield from map(_of_agent, by_weight)
    for plugin, count in overview_.waiting.items():
        yield Concern(
            state="discoverable",
            title=f"{words.tools(count)} of {texts.visible(plugin)} {'awaits' if count == 1 else 'await'} review",
            about="New or changed tools are unavailable until you approve them.",
            url=reverse("web:plugin", args=[plugin]) + "#review",
            act="Review",
        )
    yield from _stale(overview_.stale)
    yield from _unresolved(overview_.unresolved)
    if overview_.stopped:
        names = [name for _, name in overview_.stopped]
        count = len(names)
        yield Concern(
            state="denied",
            title=f"{count} {'entry' if count == 1 else 'entries'} blocked for everyone",
            about=words.listing(names),
            url=_stopped_url(*overview_.stopped[0]),
            act="View",
        )


def _stopped_url(kind: str, name: str) -> str:
    return reverse(f"web:{kind}", args=[name])


def _of_agent(summary: queries.Summary) -> Concern:
    trouble = agents.trouble(summary.inventory)
    return Concern(
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
    told = [
        f"{words.number(now)} of {words.limit(most)} {unit}"
        for now, most, unit in (
            (spent.tools, budget.max_tools, "tools"),
            (spent.tokens, budget.max_tokens, "tokens"),
        )
        if most is not None
    ]
    return f"{', '.join(told)}. {_warnings(summary)}"


def _unresolved(every: Iterable[unresolved.Unresolved]) -> Iterator[Concern]:
    for loadout, of_loadout in itertools.groupby(every, lambda one: one.loadout):
        listed = tuple(of_loadout)
        denies = any(one.field == "disabled" for one in listed)
        names = words.listing(tuple(dict.fromkeys(one.name for one in listed)))
        yield Concern(
            state="denied" if denies else "discoverable",
            title=f"{loadout}: names that do not exist",
            about=f"{names}. " + ("Disabling them has no effect." if denies else "They bring no tools."),
            url=reverse("web:loadout", args=[loadout]),
            act="View",
        )


def _stale(every: Iterable[tuple[queries.Summary, Sequence[overview.Stale]]]) -> Iterator[Concern]:
    for summary, found in every:
        agent, count = summary.agent.key, len(found)
        told = [
            f"{one.tool} ({'on' if one.on else 'off'}: {overview.explain_stale(summary, one)})"
            for one in found
        ]
        yield Concern(
            state="dormant",
            title=f"{count} override{' has' if count == 1 else 's have'} no effect for {agent}",
            about=words.listing(told, 2),
            url=reverse("web:agent_access", args=[agent]) + "?show=overridden",
            act="View",
        )


def _usage(usage_by_day: Sequence[usage.OfDay], first: dt.date, last: dt.date) -> pieces.View | None:
    by_day = {one.day: one for one in usage_by_day}
    days = [first + dt.timedelta(days=number) for number in range((last - first).days + 1)]
    calls = [by_day[day].calls if day in by_day else 0 for day in days]
    wrong = [by_day[day].refused + by_day[day].failed if day in by_day else 0 for day in days]
    most, total, errors = max(calls), sum(calls), sum(wrong)
    if not total:
        return None
    points = [_point(place, count, most) for place, count in enumerate(calls)]
    width = STEP * (len(days) - 1)
    busiest = days[calls.index(most)]
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
            Figure(number=words.number(calls[-1]), about="calls today"),
            Figure(number=words.number(sum(calls[-7:])), about=f"in 7 days{_compared(calls)}"),
            Figure(
                number=f"{100 * errors / total:.1f} %",
                about=f"errors in {len(days)} days",
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
