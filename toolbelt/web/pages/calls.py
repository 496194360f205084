"""How is the log of calls filled, with what the calls add up to?"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode

from toolbelt.control import holdings, usage
from toolbelt.core import keys
from toolbelt.web import words
from toolbelt.web.pages import model, texts
from toolbelt.web.presenters import calls, changes, pieces

USUAL_DAYS = 30
MOST_DAYS = 92
MOST_TOOLS = 12
MOST_UNUSED = 8
# More of them than this nobody turns off one by one.
MOST_UNUSED_AT_ALL = 60
LONGEST_ERROR = 240
AT_ONCE = 30
# The chart, in its own units.
HEIGHT, STEP, WIDTH = 100, 12, 9
_OUTCOMES = {
    "ok": ("active", "ok"),
    "unknown-tool": ("denied", "no such tool"),
    "tool-not-active": ("denied", "not active"),
    "tool-denied": ("denied", "denied"),
    "invalid-arguments": ("denied", "invalid arguments"),
    "tool-unavailable": ("unavailable", "unavailable"),
    "timed-out": ("unavailable", "timed out"),
    "tool-failed": ("unavailable", "failed"),
    "cancelled": ("dormant", "cancelled"),
}


def page(
    said: Mapping[str, Any], *, path: str, here: str, may_flip: Callable[[str], bool]
) -> calls.CallsPage:
    """Fill the page, narrowed as the form says; without a first day, it begins so many days ago. ``may_flip`` says
    for which agents the reader may turn off what was never called.
    """
    today = timezone.localdate()
    first = said["since"] or today - dt.timedelta(days=USUAL_DAYS - 1)
    last = said["until"] or None
    period: dict[str, Any] = {
        "since": _midnight(first),
        "until": _midnight(last + dt.timedelta(days=1)) if last else None,
    }
    asked: dict[str, Any] = {name: said[name] for name in ("agent", "tool", "outcome")}
    by_tool = usage.by_tool(**asked, **period)
    log = usage.page(**asked, **period, older_than=said["older"] or None, size=AT_ONCE)
    found = holdings.every()
    kept = {name: said[name] for name in ("agent", "tool", "outcome", "since", "until") if said[name]}
    is_whole = bool(said["every"]) or len(by_tool) <= MOST_TOOLS + 2
    there = found.catalog.tools
    return calls.CallsPage(
        agents=_choices(
            "Any agent", {name: texts.visible(name) for name in usage.said("agent")}, said["agent"]
        ),
        tools=_choices("Any tool", {name: texts.visible(name) for name in usage.said("tool")}, said["tool"]),
        outcomes=_choices(
            "Any outcome", {name: word.capitalize() for name, (_, word) in _OUTCOMES.items()}, said["outcome"]
        ),
        since=first.isoformat(),
        until=last.isoformat() if last else "",
        narrowed=bool(kept),
        matches=_matches(by_tool),
        chart=_chart(usage.by_day(**asked, **period), first, min(last or today, today)),
        lines=_lines(usage.took_by_day(**asked, **period), first, min(last or today, today)),
        figures=tuple(_figures(by_tool, there, path, kept))[: None if is_whole else MOST_TOOLS],
        every_url="" if is_whole else f"{path}?{urlencode({**kept, 'every': 'yes'})}",
        every_words=f"Show all {words.number(len(by_tool))}",
        unused=_unused(
            found,
            said["agent"],
            usage.unused(found, agent=said["agent"], **period),
            "" if said["unused"] else f"{path}?{urlencode({**kept, 'unused': 'all'})}",
            may_flip,
        )
        if not (said["tool"] or said["outcome"])
        else None,
        calls=tuple(_call(one, there, {holder.agent.key for holder in found.holders}) for one in log.calls),
        pages=_pages(log, kept, path, bool(said["older"])),
        here=here,
    )


def _midnight(day: dt.date) -> dt.datetime:
    return timezone.make_aware(dt.datetime.combine(day, dt.time.min))


def _matches(found: Sequence[usage.OfTool]) -> str:
    total, wrong = sum(one.calls for one in found), sum(one.errors for one in found)
    told = f"{words.number(total)} call{'' if total == 1 else 's'}"
    return f"{told}, {words.number(wrong)} with an error" if wrong else told


def _figures(
    found: Sequence[usage.OfTool], there: Iterable[str], path: str, kept: Mapping[str, Any]
) -> Iterable[calls.ToolFigures]:
    most = max((one.calls for one in found), default=0)
    slowest = max((one.slow or 0 for one in found), default=0)
    for one in found:
        yield calls.ToolFigures(
            tool=texts.visible(one.tool),
            mark="" if one.tool in there else "Toolbelt's own" if one.tool in keys.RESERVED else "unknown",
            tool_url=reverse("web:tool", args=[one.tool]) if one.tool in there else "",
            calls=words.number(one.calls),
            calls_url=f"{path}?{urlencode({**kept, 'tool': one.tool})}",
            share=_percent(one.calls, most),
            errors=words.number(one.errors) if one.errors else "",
            error_share=f"{_percent(one.errors, one.calls)} %" if one.errors else "",
            median=words.duration(one.median) if one.median is not None else "",
            slow=words.duration(one.slow) if one.slow is not None else "",
            slowness=_percent(one.slow or 0, slowest),
        )


def _chart(found: Sequence[usage.OfDay], first: dt.date, last: dt.date) -> calls.Chart | None:
    """Draw a bar a day; days without calls are there, and where there are too many days, the last of them."""
    if not found or last < first:
        return None
    by_day = {one.day: one for one in found}
    days = _days(first, last)
    count = len(days)
    most = max((by_day[day].calls for day in days if day in by_day), default=0)
    if not most:
        return None
    total = sum(one.calls for one in found)
    busiest = max(found, key=lambda one: one.calls)
    return calls.Chart(
        bars=tuple(_bar(place, day, by_day.get(day), most) for place, day in enumerate(days)),
        width=STEP * count - (STEP - WIDTH),
        words=f"{words.number(total)} calls in {count} days, "
        f"most on {busiest.day:%-d %B}: {words.number(busiest.calls)}",
        most=words.number(most),
        first=f"{days[0]:%-d %b}",
        last=f"{days[-1]:%-d %b}",
    )


def _days(first: dt.date, last: dt.date) -> list[dt.date]:
    """List the days of a chart: where there are too many, the last of them."""
    count = min((last - first).days + 1, MOST_DAYS)
    return [last - dt.timedelta(days=back) for back in range(count - 1, -1, -1)]


def _lines(found: Sequence[usage.TookOnDay], first: dt.date, last: dt.date) -> calls.Lines | None:
    """Draw how long calls took as two lines, from day to day on which any ran."""
    days = _days(first, last) if last >= first else []
    by_day = {one.day: one for one in found}
    ran = [(place, by_day[day]) for place, day in enumerate(days) if day in by_day]
    if len(ran) < 2:
        return None
    most = max(max(one.slow for _, one in ran), 1)
    slowest = max((one for _, one in ran), key=lambda one: one.slow)

    def points(took: Callable[[usage.TookOnDay], int]) -> str:
        return " ".join(f"{place * STEP},{HEIGHT - round(HEIGHT * took(one) / most)}" for place, one in ran)

    return calls.Lines(
        median=points(lambda one: one.median),
        slow=points(lambda one: one.slow),
        dots=tuple(
            calls.Dot(
                x=place * STEP,
                left=place * STEP - STEP // 2,
                words=f"{one.day:%A, %-d %B}: half took at most {words.duration(one.median)}, "
                f"95 of 100 at most {words.duration(one.slow)}",
            )
            for place, one in ran
        ),
        width=STEP * (len(days) - 1),
        words=f"How long calls took, by day: slowest on {slowest.day:%-d %B}, where 95 of 100 took at most "
        f"{words.duration(slowest.slow)}; half of them {words.duration(slowest.median)}",
        most=words.duration(most),
        first=f"{days[0]:%-d %b}",
        last=f"{days[-1]:%-d %b}",
    )


def _bar(place: int, day: dt.date, one: usage.OfDay | None, most: int) -> calls.Bar:
    total, refused, failed = (one.calls, one.refused, one.failed) if one else (0, 0, 0)
    # Whoever called in vain is not to vanish for being few.
    heights = [
        max(2, round(HEIGHT * count / most)) if count else 0
        for count in (failed, refused, total - refused - failed)
    ]
    bottoms = [HEIGHT - sum(heights[: number + 1]) for number in range(3)]
    wrong = f", {words.number(refused)} refused, {words.number(failed)} failed" if refused or failed else ""
    return calls.Bar(
        x=place * STEP,
        words=f"{day:%A, %-d %B}: {words.number(total)} call{'' if total == 1 else 's'}{wrong}",
        good_y=max(0, bottoms[2]),
        good=heights[2],
        refused_y=bottoms[1],
        refused=heights[1],
        failed_y=bottoms[0],
        failed=heights[0],
    )


def _unused(
    found: holdings.Holdings,
    agent: str,
    idle: Sequence[usage.Unused],
    every_url: str,
    may_flip: Callable[[str], bool],
) -> calls.Unused | None:
    """Advise: the dearest first, with whom each could be turned off for; many of them where no url leads to more."""
    if not idle:
        return None
    overrides = {one.agent.key: one.agent.overrides for one in found.holders}
    count, tokens = len(idle), sum(one.tokens for one in idle)
    shown = idle[: MOST_UNUSED if every_url else MOST_UNUSED_AT_ALL]
    more = count - len(shown)
    cost = (
        f"{words.about(tokens)} tokens a request"
        if agent
        else f"{words.about(tokens)} tokens over a request of each agent"
    )
    return calls.Unused(
        tools=tuple(
            calls.UnusedTool(
                tool=one.tool.key,
                prefix=model.split(one.tool.key)[0],
                name=model.split(one.tool.key)[1],
                agents=words.listing(one.agents),
                is_of_many=len(one.agents) > 1,
                tokens=words.number(one.tool.tokens),
                holders=tuple(
                    calls.Holder(agent=holder, was=words.stored(overrides[holder].get(one.tool.key)))
                    for holder in one.agents
                    if may_flip(holder)
                ),
            )
            for one in shown
        ),
        words=f"{words.tools(count)}, {cost}",
        more=f"{words.tools(more)} more" if more else "",
        more_url=every_url if more else "",
        agent=agent,
    )


def _call(one: usage.Call, there: Iterable[str], agents: Iterable[str]) -> calls.Call:
    state, word = _OUTCOMES.get(one.outcome, ("dormant", one.outcome))
    return calls.Call(
        when=words.moment(one.at),
        agent=texts.visible(one.agent),
        agent_url=reverse("web:agent_access", args=[one.agent]) if one.agent in agents else "",
        tool=texts.visible(one.tool),
        tool_url=reverse("web:tool", args=[one.tool]) if one.tool in there else "",
        state=state,
        outcome=word,
        error=texts.visible(words.cut(one.error, LONGEST_ERROR)),
        duration=words.duration(one.duration_ms),
        sizes=f"{words.size(one.arguments_bytes)} in, {words.size(one.result_bytes)} out",
        session=texts.visible(words.cut(one.session, 80)),
    )


def _pages(log: usage.Page, kept: Mapping[str, Any], path: str, is_older: bool) -> changes.Pages:
    if not log.calls:
        return changes.Pages(words="")
    newest = f"{path}?{urlencode(kept)}#log" if kept else f"{path}#log"
    older = urlencode({**kept, "older": log.calls[-1].id})
    return changes.Pages(
        words=f"{len(log.calls)} of {words.number(log.total)}",
        newer_url=newest if is_older else "",
        older_url=f"{path}?{older}#log" if log.has_older else "",
    )


def _percent(part: int, whole: int) -> int:
    return round(100 * part / whole) if whole else 0


def _choices(anything: str, names: Mapping[str, str], chosen: str) -> tuple[pieces.Choice, ...]:
    first = pieces.Choice(value="", label=anything, chosen=chosen not in names)
    rest = (pieces.Choice(value=value, label=label, chosen=value == chosen) for value, label in names.items())
    return (first, *rest)
