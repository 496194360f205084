"""The log of calls, and what the calls add up to."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode

from toolbelt.control.access import access_index
from toolbelt.control.reports import usage
from toolbelt.core import keys
from toolbelt.web.calls import charts
from toolbelt.web.kit import model, paging, pieces, texts
from toolbelt.web.kit import words as kit_words

# What is shown unless somebody asks for more: the longest of these that holds not too many calls to be added up.
USUAL_DAYS = (30, 7, 1)
MAX_CALLS = 300_000
MAX_TOOLS = 12
MAX_UNUSED = 8
# Of the tools that were not called, as many as a page shows where all of them are asked for.
MAX_UNUSED_ON_PAGE = 30
# For so many agents each can be turned off here; for the others, where all of its agents are.
MAX_HOLDERS = 6
MAX_ERROR_LENGTH = 240
AT_ONCE = 30
# What is not among so many choices is narrowed to from its own page, or from the figures.
MAX_CHOICES = 1000
# How many new calls are counted.
MAX_NEWS = 1000
_OUTCOMES = {
    "ok": ("active", "ok"),
    "unknown-tool": ("denied", "no such tool"),
    "tool-not-active": ("denied", "not available"),
    "tool-denied": ("denied", "denied"),
    "invalid-arguments": ("denied", "invalid arguments"),
    "tool-unavailable": ("unavailable", "unavailable"),
    "timed-out": ("unavailable", "timed out"),
    "tool-failed": ("unavailable", "failed"),
    "cancelled": ("dormant", "cancelled"),
    "admitted": ("active", "running in the agent's program"),
    "unreported": ("unavailable", "unreported"),
    "run-by-client": ("denied", "run by the agent's program"),
    "run-by-toolbelt": ("denied", "run by Toolbelt"),
}


def page(filters: Mapping[str, Any], *, path: str, may_flip: Callable[[str], bool]) -> pieces.View:
    """Fill the page, narrowed as the form says; without a first day, it begins so many days ago (:data:`USUAL_DAYS`).
    ``may_flip`` says for which agents the reader may turn off what was never called.
    """
    today = timezone.localdate()
    first, last = _days_of(filters, today)
    period = _period(first, last)
    asked: dict[str, Any] = {name: filters[name] for name in ("agent", "tool", "outcome")}
    by_tool = usage.by_tool(**asked, **period, timed=None if filters["every"] else MAX_TOOLS + 2)
    log = usage.page(**asked, **period, older_than=filters["older"] or None, size=AT_ONCE)
    found = access_index.load()
    kept = _kept(filters)
    is_whole = bool(filters["every"]) or len(by_tool) <= MAX_TOOLS + 2
    there, agents = found.catalog.tools, {holder.agent.key for holder in found.holders}
    return pieces.View(
        agents=pieces.choices(_offered("agent", filters["agent"]), filters["agent"], "Any agent"),
        tools=pieces.choices(_offered("tool", filters["tool"]), filters["tool"], "Any tool"),
        outcomes=pieces.choices(
            {name: word.capitalize() for name, (_, word) in _OUTCOMES.items()},
            filters["outcome"],
            "Any outcome",
        ),
        since=first.isoformat(),
        until=last.isoformat() if last else "",
        narrowed=bool(kept),
        matches=_matches(by_tool),
        chart=charts.chart(usage.by_day(**asked, **period), first, min(last or today, today)),
        lines=charts.lines(usage.took_by_day(**asked, **period), first, min(last or today, today)),
        figures=tuple(
            itertools.islice(_figures(by_tool, there, path, kept), None if is_whole else MAX_TOOLS)
        ),
        every_url="" if is_whole else f"{path}?{urlencode({**kept, 'every': 'yes'})}",
        every_words=f"Show all {kit_words.number(len(by_tool))}",
        unused=_unused(
            found,
            filters["agent"],
            usage.unused(
                found,
                agent=filters["agent"],
                most=MAX_UNUSED_ON_PAGE if filters["unused"] else MAX_UNUSED,
                offset=_unused_offset(filters),
                **period,
            ),
            lambda offset: _unused_url(filters, path, offset),
            may_flip,
        )
        if not (filters["tool"] or filters["outcome"])
        else None,
        calls=tuple(_call(call, there, agents) for call in log.calls),
        pages=_pages(log, kept, path, bool(filters["older"])),
        news=None
        if filters["older"] or (last and last < today)
        else _news(path, kept, newest=log.calls[0].id if log.calls else 0, words=""),
    )


def news(filters: Mapping[str, Any], *, path: str, newest: int) -> pieces.View:
    """Return how many calls came in behind the call ``newest``, narrowed as the form says."""
    asked: dict[str, Any] = {name: filters[name] for name in ("agent", "tool", "outcome")}
    # Behind a call there is no older one: then it needs no first day, which may take long to choose.
    first, last = (filters["since"], filters["until"]) if newest else _days_of(filters, timezone.localdate())
    count = usage.count_newer(newest, most=MAX_NEWS, **asked, **_period(first, last))
    told = f"{kit_words.number(count)}{' or more' if count == MAX_NEWS else ''} new call{'' if count == 1 else 's'}"
    return _news(path, _kept(filters), newest=newest, words=told if count else "")


def _news(path: str, kept: Mapping[str, Any], *, newest: int, words: str) -> pieces.View:
    return pieces.View(
        words=words,
        url=f"{path}?{urlencode({**kept, 'newer': newest})}",
        show_url=f"{path}?{urlencode(kept)}" if kept else path,
    )


def _offered(field: str, chosen: str) -> dict[str, str]:
    """Name what the calls can be narrowed to: what is called, up to a number that one can choose from."""
    names = usage.logged_values(field)
    if len(names) > MAX_CHOICES:
        names = sorted({*names[:MAX_CHOICES], *([chosen] if chosen in names else [])})
    return {name: texts.visible(name) for name in names}


def _kept(filters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: filters[name] for name in ("agent", "tool", "outcome", "since", "until") if filters[name]}


def _days_of(filters: Mapping[str, Any], today: dt.date) -> tuple[dt.date, dt.date | None]:
    return filters["since"] or _usual(filters, filters["until"] or today), filters["until"] or None


def _usual(filters: Mapping[str, Any], last: dt.date) -> dt.date:
    """Choose the first day for who asks for none."""
    *long, shortest = [last - dt.timedelta(days=days - 1) for days in USUAL_DAYS]
    narrowing = {name: filters[name] for name in ("agent", "tool", "outcome")}
    for first in long:
        if not usage.are_more(MAX_CALLS, **narrowing, **_period(first, last)):
            return first
    return shortest


def _period(first: dt.date | None, last: dt.date | None) -> dict[str, Any]:
    return {
        "since": _midnight(first) if first else None,
        "until": _midnight(last + dt.timedelta(days=1)) if last else None,
    }


def _midnight(day: dt.date) -> dt.datetime:
    return timezone.make_aware(dt.datetime.combine(day, dt.time.min))


def _matches(tools: Sequence[usage.OfTool]) -> str:
    total, wrong = sum(tool.calls for tool in tools), sum(one.errors for one in tools)
    told = f"{kit_words.number(total)} call{'' if total == 1 else 's'}"
    return f"{told}, {kit_words.number(wrong)} with errors" if wrong else told


def _figures(
    tools: Sequence[usage.OfTool], there: Iterable[str], path: str, kept: Mapping[str, Any]
) -> Iterable[pieces.View]:
    most = max((one.calls for one in tools), default=0)
    slowest = max((one.slow or 0 for one in tools), default=0)
    for one in tools:
        yield pieces.View(
            tool=texts.visible(one.tool),
            mark="" if one.tool in there else "Toolbelt's own" if one.tool in keys.RESERVED else "unknown",
            tool_url=reverse("web:tool", args=[one.tool]) if one.tool in there else "",
            calls=kit_words.number(one.calls),
            calls_url=f"{path}?{urlencode({**kept, 'tool': one.tool})}",
            share=_percent(one.calls, most),
            errors=kit_words.number(one.errors) if one.errors else "",
            error_share=f"{_percent(one.errors, one.calls)} %" if one.errors else "",
            median=kit_words.duration(one.median) if one.median is not None else "",
            slow=kit_words.duration(one.slow) if one.slow is not None else "",
            slowness=_percent(one.slow or 0, slowest),
        )


def _unused(
    index: access_index.AccessIndex,
    agent: str,
    idle: usage.AllUnused,
    more_url: Callable[[int], str],
    may_flip: Callable[[str], bool],
) -> pieces.View | None:
    """Return a part of the unused tools, the dearest first, each with agents for which it can be turned off.

    ``more_url`` returns the address of the part that begins at an offset.
    """
    if not idle.count:
        return None
    overrides = {one.agent.key: one.agent.overrides for one in index.holders}
    behind = idle.offset + len(idle.tools)
    more = idle.count - behind
    cost = (
        f"{kit_words.about(idle.tokens)} tokens per request"
        if agent
        else f"{kit_words.about(idle.tokens)} tokens in total, for one request of each agent"
    )
    return pieces.View(
        tools=tuple(
            pieces.View(
                tool=tool.tool.key,
                prefix=model.split(tool.tool.key)[0],
                name=model.split(tool.tool.key)[1],
                agents=kit_words.listing(tool.agents),
                is_of_many=len(tool.agents) > 1,
                tokens=kit_words.number(tool.tool.tokens),
                holders=tuple(
                    pieces.View(agent=holder, was=kit_words.stored(overrides[holder].get(tool.tool.key)))
                    for holder in itertools.islice(filter(may_flip, tool.agents), MAX_HOLDERS)
                ),
                is_more=len(tool.agents) > MAX_HOLDERS,
            )
            for tool in idle.tools
        ),
        words=f"{kit_words.tools(idle.count)}, {cost}",
        more=f"{kit_words.tools(more)} more" if more else "",
        more_url=more_url(behind) if more else "",
        agent=agent,
    )


def _unused_offset(filters: Mapping[str, Any]) -> int:
    return int(filters["unused_offset"] or 0) if filters["unused"] else 0


def _unused_url(filters: Mapping[str, Any], path: str, offset: int) -> str:
    """Return the address of the unused tools from this place on; of all of them where only the first are shown."""
    place = {"unused_offset": offset} if filters["unused"] else {}
    return f"{path}?{urlencode({**_kept(filters), 'unused': 'all', **place})}"


def _call(call: usage.Call, there: Iterable[str], agents: Iterable[str]) -> pieces.View:
    state, word = _OUTCOMES.get(call.outcome, ("dormant", call.outcome))
    return pieces.View(
        when=kit_words.moment(call.at),
        agent=texts.visible(call.agent),
        agent_url=reverse("web:agent_access", args=[call.agent]) if call.agent in agents else "",
        tool=texts.visible(call.tool),
        tool_url=reverse("web:tool", args=[call.tool]) if call.tool in there else "",
        state=state,
        outcome=word,
        error=texts.visible(kit_words.cut(call.error, MAX_ERROR_LENGTH)),
        revision=kit_words.number(call.revision) if call.reason and call.revision is not None else "",
        why_url=_why_url(call) if call.reason and call.tool in there and call.agent in agents else "",
        duration=kit_words.duration(call.duration_ms),
        sizes=f"{kit_words.size(call.arguments_bytes)} in, {kit_words.size(call.result_bytes)} out",
        session=texts.visible(kit_words.cut(call.session, 80)),
    )


def _why_url(call: usage.Call) -> str:
    """Return the address of why the agent did not have the tool, as of the call."""
    asked = {"view": "why", "tool": call.tool, "at": call.at.isoformat()}
    return f"{reverse('web:preview', args=[call.agent])}?{urlencode(asked)}"


def _pages(log: usage.Page, kept: Mapping[str, Any], path: str, is_older: bool) -> paging.Pages:
    if not log.calls:
        return paging.Pages(words="")
    newest = f"{path}?{urlencode(kept)}#log" if kept else f"{path}#log"
    older = urlencode({**kept, "older": log.calls[-1].id})
    return paging.Pages(
        words=f"{len(log.calls)} of {kit_words.number(log.total)}",
        newer_url=newest if is_older else "",
        older_url=f"{path}?{older}#log" if log.has_older else "",
    )


def _percent(part: int, whole: int) -> int:
    return round(100 * part / whole) if whole else 0
