"""The log of calls, and what the calls add up to."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from django import forms
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from toolbelt.control.access import access_index
from toolbelt.control.people import rights
from toolbelt.control.reports import usage
from toolbelt.core import keys
from toolbelt.web.calls import charts, unused
from toolbelt.web.kit import (
    downloads,
    fields,
    filters,
    http,
    paging,
    periods,
    pieces,
    responses,
    saved_views,
    texts,
    words,
)

# The tabs of the page; the first is the one without a name in the address.
TABS = {"": "Usage", "log": "Log", "unused": "Unused"}
LOG, UNUSED = "log", "unused"
# How many days are shown by default: the first of these that has few enough calls to be added up.
USUAL_DAYS = (30, 7, 1)
MAX_CALLS = 300_000
MAX_TOOLS = 12
AT_ONCE = 30
# What is not among so many choices is narrowed to from its own page, or from the figures.
MAX_CHOICES = 1000
# How many new calls are counted.
MAX_NEWS = 1000
_COLUMNS = tuple(field.name for field in dataclasses.fields(usage.Call))
_READING = responses.reading("call_record")
_OUTCOMES = {
    "ok": ("active", "succeeded"),
    "unknown-tool": ("denied", "no such tool"),
    "tool-not-active": ("denied", "not available"),
    "tool-denied": ("denied", "refused"),
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


class Calls(periods.Period):
    """The filters and position of the log of calls."""

    view = forms.ChoiceField(required=False, choices=list(TABS.items()))
    agent = forms.CharField(required=False, max_length=64)
    session = forms.CharField(required=False, max_length=200, strip=False)
    tool = forms.CharField(required=False, max_length=200)
    outcome = forms.CharField(required=False, max_length=20)
    older = forms.IntegerField(required=False, min_value=1)
    newer = forms.IntegerField(required=False, min_value=0)
    every = forms.BooleanField(required=False)
    offset = fields.Offset()


VIEWS = saved_views.FilteredList(
    page="calls", form=Calls, names=("agent", "session", "tool", "outcome"), tab="view"
)


@require_safe
@_READING
def page(request: http.Request) -> HttpResponse:
    """Show a tab of the page; to htmx all but the filter. Without a first day, it begins as :data:`USUAL_DAYS` says.

    A page that shows the calls up to one of them (``newer``) only receives how many there are since.
    """
    given = filters.read(Calls(request.GET))
    if "newer" in request.GET:
        return render(request, "calls/_new_calls.html", {"news": _count_news(given, request.path)})
    shown = _page(given, request.path, rights.flip_check(request.user))
    shown.views = VIEWS.present(request, given)
    return responses.show(request, shown, "calls/list.html", "calls/_calls.html")


@require_safe
@_READING
def one(request: http.Request, call: int) -> HttpResponse:
    """Show one call as it was recorded."""
    record, index = usage.find(call), access_index.load()
    if record is None:
        raise Http404(f"There is no call {call}.")
    agents = {access.agent.key for access in index.agents}
    shown = _line(record, index.catalog.tools, agents, period_since(record.at))
    shown.error = texts.text(record.error) if record.error else None
    shown.has_plugin = record.plugin in index.catalog.plugins
    if record.arguments is not None:
        written = json.dumps(record.arguments, indent=2, ensure_ascii=False, sort_keys=True)
        shown.arguments = texts.text(written)
    return responses.show(request, shown, "calls/call.html")


@require_safe
@_READING
def download(request: http.Request) -> HttpResponseBase:
    """Return all calls that the filters leave as a file, made while it is sent."""
    given = filters.read(Calls(request.GET))
    first, last = periods.days(given)
    # Without a period, for the one that the page begins with.
    first = first or usual_first_day(last or timezone.localdate(), **_narrowed(given))
    batches = usage.iterate(**_narrowed(given), **periods.time_range(first, last))
    rows = ([[getattr(call, name) for name in _COLUMNS] for call in calls] for calls in batches)
    return downloads.send(request, downloads.csv_lines(_COLUMNS, rows), "calls", "csv")


def _page(given: Mapping[str, Any], path: str, may_flip: Callable[[str], bool]) -> pieces.View:
    tab = given["view"]
    if tab == UNUSED:
        # A tool that was not called has neither a session nor an outcome.
        given = {**given, "session": "", "tool": "", "outcome": ""}
    today = timezone.localdate()
    chosen, last = periods.days(given)
    first = chosen or usual_first_day(last or today, **_narrowed(given))
    kept = _address_parameters(given)
    parameters = _narrowed(given) | periods.address_parameters(given)
    shown = pieces.View(
        tab=tab,
        tabs=tuple(_tabs(given, path)),
        agents=pieces.choices(_offered("agent", given["agent"]), given["agent"], "Any agent"),
        period=periods.present(given, first=first),
        narrowed=bool(parameters),
    )
    if tab == UNUSED:
        shown.unused = unused.present(given, kept, periods.time_range(first, last), path, may_flip)
        shown.matches = shown.unused.matches
        return shown
    matching = _narrowed(given) | periods.time_range(first, last)
    log = usage.page(**matching, older_than=given["older"] or None, size=AT_ONCE if tab == LOG else 1)
    shown.tools = pieces.choices(_offered("tool", given["tool"]), given["tool"], "Any tool")
    shown.outcomes = pieces.choices(
        {usage.ERROR: "Errors"} | {name: word.capitalize() for name, (_, word) in _OUTCOMES.items()},
        given["outcome"],
        "Any outcome",
    )
    shown.session = given["session"]
    shown.download_url = reverse("web:download_calls", query=parameters)
    if not (given["older"] or (last and last < today)):
        shown.news = _news(path, kept, newest=log.calls[0].id if log.calls else 0, words="")
    if tab == LOG:
        index, period = access_index.load(), periods.address_parameters(given)
        there, agents = index.catalog.tools, {access.agent.key for access in index.agents}
        shown.matches = f"{words.counted(log.total, 'call')}, newest first" if log.total else "0 calls"
        shown.calls = tuple(_line(call, there, agents, period) for call in log.calls)
        shown.pages = _pages(log, kept, path, bool(given["older"]))
    else:
        _add_usage(shown, given, path, matching, (first, min(last or today, today)))
    return shown


def _tabs(given: Mapping[str, Any], path: str) -> Iterable[pieces.View]:
    """Return the tabs; the others keep the filters that they have."""
    for name, title in TABS.items():
        names = ("agent",) if name == UNUSED else VIEWS.names
        kept = {"view": name} | {field: given[field] for field in names} | periods.address_parameters(given)
        yield pieces.View(title=title, url=filters.address(path, kept), is_current=name == given["view"])


def _add_usage(
    page: pieces.View,
    given: Mapping[str, Any],
    path: str,
    matching: Mapping[str, Any],
    days: tuple[dt.date, dt.date],
) -> None:
    """Add the charts, and the figures of each tool."""
    by_tool = usage.by_tool(**matching, timed=None if given["every"] else MAX_TOOLS + 2)
    kept = _address_parameters(given)
    there = access_index.load().catalog.tools
    is_whole = bool(given["every"]) or len(by_tool) <= MAX_TOOLS + 2
    count, wrong = sum(tool.calls for tool in by_tool), sum(tool.errors for tool in by_tool)
    page.matches = words.counted(count, "call") + (f", {words.counted(wrong, 'error')}" if wrong else "")
    page.day_url = f"{path}?{urlencode({'view': LOG, **_narrowed(given), 'period': periods.CUSTOM})}&"
    page.chart = charts.chart(usage.by_day(**matching), *days)
    page.lines = charts.lines(usage.durations_by_day(**matching), *days)
    figures = list(_figures(by_tool, there, path, kept))
    page.figures = figures if is_whole else figures[:MAX_TOOLS]
    page.every_url = "" if is_whole else f"{path}?{urlencode({**kept, 'every': 'yes'})}"
    page.total = len(by_tool)


def _count_news(given: Mapping[str, Any], path: str) -> pieces.View:
    """Return how many calls there are since the ``newer`` one that the page shows."""
    newest = given["newer"] or 0
    # No older call is counted then, so the first day, which may take long to choose, is not needed.
    first, last = periods.days(given)
    since = first or (None if newest else usual_first_day(last or timezone.localdate(), **_narrowed(given)))
    period = periods.time_range(since, last)
    count = usage.count_newer(newest, maximum=MAX_NEWS, **_narrowed(given), **period)
    many = f"{words.number(count)} or more new calls" if count == MAX_NEWS else ""
    new = many or words.counted(count, "new call")
    return _news(path, _address_parameters(given), newest=newest, words=new if count else "")


def _news(path: str, parameters: Mapping[str, Any], *, newest: int, words: str) -> pieces.View:
    return pieces.View(
        words=words,
        url=f"{path}?{urlencode({**parameters, 'newer': newest})}",
        show_url=filters.address(path, parameters),
    )


def _offered(field: str, chosen: str) -> dict[str, str]:
    """Return the names to choose from; not all, if there are very many."""
    names = usage.logged_values(field)
    if len(names) > MAX_CHOICES:
        names = sorted({*names[:MAX_CHOICES], *([chosen] if chosen in names else [])})
    return {name: texts.visible(name) for name in names}


def _address_parameters(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tab, and what narrows it, for the address of another part of it."""
    tab = {"view": given["view"]} if given["view"] else {}
    return tab | _narrowed(given) | periods.address_parameters(given)


def _narrowed(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: given[name] for name in VIEWS.names if given[name]}


def usual_first_day(last: dt.date, **narrowing: Any) -> dt.date:
    """Return the first day if the reader chose none: so early that there are not too many calls to add up."""
    return first_day(
        last, lambda first: usage.exceeds(MAX_CALLS, **narrowing, **periods.time_range(first, last))
    )


def first_day(last: dt.date, exceeds: Callable[[dt.date], bool]) -> dt.date:
    """Return the first day of the longest usual period; ``exceeds`` says of a day whether there are more than
    :data:`MAX_CALLS` since then.
    """
    *long, shortest = [last - dt.timedelta(days=days - 1) for days in USUAL_DAYS]
    return next((first for first in long if not exceeds(first)), shortest)


def _figures(
    tools: Sequence[usage.OfTool], there: Iterable[str], path: str, parameters: Mapping[str, Any]
) -> Iterable[pieces.View]:
    maximum = max((tool.calls for tool in tools), default=0)
    slowest = max((tool.slow or 0 for tool in tools), default=0)
    for tool in tools:
        key = tool.tool
        yield pieces.View(
            usage=tool,
            mark="" if key in there else "Toolbelt's own" if key in keys.RESERVED else "unknown",
            calls_url=f"{path}?{urlencode({'view': LOG, **parameters, 'tool': key})}",
            share=_percent(tool.calls, maximum),
            error_share=f"{_percent(tool.errors, tool.calls)} %" if tool.errors else "",
            slowness=_percent(tool.slow or 0, slowest),
        )


def _line(
    call: usage.Call, there: Collection[str], agents: Collection[str], period: Mapping[str, str]
) -> pieces.View:
    """Present one call; ``there`` are the tools that exist, and ``agents`` the agents. Its session leads to the calls
    of the session in this period.
    """
    state, word = _OUTCOMES.get(call.outcome, ("dormant", call.outcome))
    decision = {"view": "why", "tool": call.tool, "at": call.at.isoformat()}
    return pieces.View(
        call=call,
        agent_url=reverse("web:agent_access", args=[call.agent]) if call.agent in agents else "",
        tool_url=reverse("web:tool", args=[call.tool]) if call.tool in there else "",
        state=state,
        outcome=word,
        # Why the agent had the tool or not, as of the call.
        why_url=reverse("web:preview", args=[call.agent], query=decision)
        if call.tool in there and call.agent in agents
        else "",
        session_url=session_url(call.agent, call.session, **period) if call.session else "",
    )


def period_since(at: dt.datetime) -> dict[str, str]:
    """Return the period from the day before this time on: a session may have begun before midnight."""
    since = timezone.localdate(at) - dt.timedelta(days=1)
    return {"period": periods.CUSTOM, "since": since.isoformat()}


def session_url(agent: str, session: str, **period: str) -> str:
    """Return the address of the calls of one session."""
    return reverse("web:calls", query={"view": LOG, "agent": agent, "session": session, **period})


def _pages(log: usage.Page, parameters: Mapping[str, Any], path: str, is_older: bool) -> paging.Pages:
    if not log.calls:
        return paging.Pages(words="")
    newest = f"{path}?{urlencode(parameters)}"
    older = urlencode({**parameters, "older": log.calls[-1].id})
    return paging.Pages(
        words=f"{len(log.calls)} of {words.number(log.total)}",
        newer_url=newest if is_older else "",
        older_url=f"{path}?{older}" if log.has_older else "",
    )


def _percent(part: int, whole: int) -> int:
    return round(100 * part / whole) if whole else 0
