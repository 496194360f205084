"""How is the log of calls filled, with what the calls add up to?"""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode

from toolbelt.control import holdings, usage
from toolbelt.core import keys
from toolbelt.web import words
from toolbelt.web.pages import call_charts, model, texts
from toolbelt.web.presenters import calls, changes, pieces

# What is shown unless somebody asks for more: the longest of these that holds not too many calls to be added up.
USUAL_DAYS = (30, 7, 1)
MOST_CALLS = 300_000
MOST_TOOLS = 12
MOST_UNUSED = 8
# Of the tools that were not called, as many as a page shows where all of them are asked for.
MAX_UNUSED_ON_PAGE = 30
# For so many agents each can be turned off here; for the others, where all of its agents are.
MOST_HOLDERS = 6
LONGEST_ERROR = 240
AT_ONCE = 30
# What is not among so many choices is narrowed to from its own page, or from the figures.
MOST_CHOICES = 1000
# How many new calls are counted.
MOST_NEWS = 1000
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
    """Fill the page, narrowed as the form says; without a first day, it begins so many days ago (:data:`USUAL_DAYS`).
    ``may_flip`` says for which agents the reader may turn off what was never called.
    """
    today = timezone.localdate()
    first, last = _days_of(said, today)
    period = _period(first, last)
    asked: dict[str, Any] = {name: said[name] for name in ("agent", "tool", "outcome")}
    by_tool = usage.by_tool(**asked, **period, timed=None if said["every"] else MOST_TOOLS + 2)
    log = usage.page(**asked, **period, older_than=said["older"] or None, size=AT_ONCE)
    found = holdings.every()
    kept = _kept(said)
    is_whole = bool(said["every"]) or len(by_tool) <= MOST_TOOLS + 2
    there, agents = found.catalog.tools, {holder.agent.key for holder in found.holders}
    return calls.CallsPage(
        agents=_choices("Any agent", _offered("agent", said["agent"]), said["agent"]),
        tools=_choices("Any tool", _offered("tool", said["tool"]), said["tool"]),
        outcomes=_choices(
            "Any outcome", {name: word.capitalize() for name, (_, word) in _OUTCOMES.items()}, said["outcome"]
        ),
        since=first.isoformat(),
        until=last.isoformat() if last else "",
        narrowed=bool(kept),
        matches=_matches(by_tool),
        chart=call_charts.chart(usage.by_day(**asked, **period), first, min(last or today, today)),
        lines=call_charts.lines(usage.took_by_day(**asked, **period), first, min(last or today, today)),
        figures=tuple(
            itertools.islice(_figures(by_tool, there, path, kept), None if is_whole else MOST_TOOLS)
        ),
        every_url="" if is_whole else f"{path}?{urlencode({**kept, 'every': 'yes'})}",
        every_words=f"Show all {words.number(len(by_tool))}",
        unused=_unused(
            found,
            said["agent"],
            usage.unused(
                found,
                agent=said["agent"],
                most=MAX_UNUSED_ON_PAGE if said["unused"] else MOST_UNUSED,
                offset=_unused_offset(said),
                **period,
            ),
            lambda offset: _unused_url(said, path, offset),
            may_flip,
        )
        if not (said["tool"] or said["outcome"])
        else None,
        calls=tuple(_call(one, there, agents) for one in log.calls),
        pages=_pages(log, kept, path, bool(said["older"])),
        news=None
        if said["older"] or (last and last < today)
        else _news(path, kept, newest=log.calls[0].id if log.calls else 0, words=""),
        here=here,
    )


def news(said: Mapping[str, Any], *, path: str, newest: int) -> calls.News:
    """Say how many calls came in behind the call ``newest``, narrowed as the form says."""
    asked: dict[str, Any] = {name: said[name] for name in ("agent", "tool", "outcome")}
    # Behind a call there is no older one: then it needs no first day, which may take long to choose.
    first, last = (said["since"], said["until"]) if newest else _days_of(said, timezone.localdate())
    count = usage.count_newer(newest, most=MOST_NEWS, **asked, **_period(first, last))
    told = (
        f"{words.number(count)}{' or more' if count == MOST_NEWS else ''} new call{'' if count == 1 else 's'}"
    )
    return _news(path, _kept(said), newest=newest, words=told if count else "")


def _news(path: str, kept: Mapping[str, Any], *, newest: int, words: str) -> calls.News:
    return calls.News(
        words=words,
        url=f"{path}?{urlencode({**kept, 'newer': newest})}",
        show_url=f"{path}?{urlencode(kept)}" if kept else path,
    )


def _offered(field: str, chosen: str) -> dict[str, str]:
    """Name what the calls can be narrowed to: what is called, up to a number that one can choose from."""
    names = usage.said(field)
    if len(names) > MOST_CHOICES:
        names = sorted({*names[:MOST_CHOICES], *([chosen] if chosen in names else [])})
    return {name: texts.visible(name) for name in names}


def _kept(said: Mapping[str, Any]) -> dict[str, Any]:
    return {name: said[name] for name in ("agent", "tool", "outcome", "since", "until") if said[name]}


def _days_of(said: Mapping[str, Any], today: dt.date) -> tuple[dt.date, dt.date | None]:
    return said["since"] or _usual(said, said["until"] or today), said["until"] or None


def _usual(said: Mapping[str, Any], last: dt.date) -> dt.date:
    """Choose the first day for who asks for none."""
    *long, shortest = [last - dt.timedelta(days=days - 1) for days in USUAL_DAYS]
    narrowing = {name: said[name] for name in ("agent", "tool", "outcome")}
    for first in long:
        if not usage.are_more(MOST_CALLS, **narrowing, **_period(first, last)):
            return first
    return shortest


def _period(first: dt.date | None, last: dt.date | None) -> dict[str, Any]:
    return {
        "since": _midnight(first) if first else None,
        "until": _midnight(last + dt.timedelta(days=1)) if last else None,
    }


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


def _unused(
    found: holdings.Holdings,
    agent: str,
    idle: usage.AllUnused,
    more_url: Callable[[int], str],
    may_flip: Callable[[str], bool],
) -> calls.Unused | None:
    """Return a part of the unused tools, the dearest first, each with agents for which it can be turned off.

    ``more_url`` returns the address of the part that begins at an offset.
    """
    if not idle.count:
        return None
    overrides = {one.agent.key: one.agent.overrides for one in found.holders}
    behind = idle.offset + len(idle.tools)
    more = idle.count - behind
    cost = (
        f"{words.about(idle.tokens)} tokens a request"
        if agent
        else f"{words.about(idle.tokens)} tokens over a request of each agent"
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
                    for holder in itertools.islice(filter(may_flip, one.agents), MOST_HOLDERS)
                ),
                is_more=len(one.agents) > MOST_HOLDERS,
            )
            for one in idle.tools
        ),
        words=f"{words.tools(idle.count)}, {cost}",
        more=f"{words.tools(more)} more" if more else "",
        more_url=more_url(behind) if more else "",
        agent=agent,
    )


def _unused_offset(said: Mapping[str, Any]) -> int:
    return int(said["unused_offset"] or 0) if said["unused"] else 0


def _unused_url(said: Mapping[str, Any], path: str, offset: int) -> str:
    """Return the address of the unused tools from this place on; of all of them where only the first are shown."""
    place = {"unused_offset": offset} if said["unused"] else {}
    return f"{path}?{urlencode({**_kept(said), 'unused': 'all', **place})}"


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
