"""The log of calls, and their usage figures."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from django import forms
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from toolbelt.control import trials
from toolbelt.control.access import access_index
from toolbelt.control.people import rights
from toolbelt.control.reports import usage
from toolbelt.core import keys
from toolbelt.core.rules import reasons
from toolbelt.web.call_log import charts, unused
from toolbelt.web.kit import (
    call_outcomes,
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
from toolbelt.web.review import asked_calls

# The tabs of the page; the first is the one without a name in the address.
TABS = {"": "Usage", "log": "Log", "unused": "Unused"}
LOG, UNUSED = "log", "unused"
# The default number of days: the first of these with few enough calls to add up.
USUAL_DAYS = (30, 7, 1)
MAX_CALLS = 300_000
MAX_TOOLS = 12
PAGE_SIZE = 30
# The most choices of a filter; the figures and the pages of tools and agents link to the others.
MAX_CHOICES = 1000
# The most new calls that are counted.
MAX_NEWS = 1000
_COLUMNS = tuple(field.name for field in dataclasses.fields(usage.Call))
# The refusals whose reason is the state of the tool, unless it was active.
_LACKED = frozenset({"unknown-tool", "tool-withdrawn", "tool-not-active", "tool-denied", "tool-unavailable"})
_REQUIRE_READ = responses.require_read("call_record")


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
@_REQUIRE_READ
def page(request: http.Request) -> HttpResponse:
    """Show a tab of the page; htmx gets all but the filters. The default period follows from :data:`USUAL_DAYS`.

    With ``newer``, the response only contains the number of calls since that one.
    """
    criteria = filters.read(Calls(request.GET))
    if "newer" in request.GET:
        return render(request, "calls/_new_calls.html", {"news": _count_new_calls(criteria, request.path)})
    return responses.show(request, _Page(request, criteria), "calls/list.html", "calls/_calls.html")


@require_safe
@_REQUIRE_READ
def detail(request: http.Request, call: int) -> HttpResponse:
    """Show one call as it was recorded."""
    record = usage.find(call)
    if record is None:
        raise Http404(f"There is no call {call}.")
    return responses.show(request, _CallPage(request, record), "calls/call.html")


@require_safe
@_REQUIRE_READ
def download(request: http.Request) -> HttpResponseBase:
    """Return all matching calls as a file that is generated while it is sent."""
    criteria = filters.read(Calls(request.GET))
    first, last = periods.days(criteria)
    # Without a period, use the default period of the page.
    first = first or usual_first_day(last or timezone.localdate(), **_filters(criteria))
    batches = usage.iterate(**_filters(criteria), **periods.time_range(first, last))
    rows = ([[getattr(call, name) for name in _COLUMNS] for call in calls] for calls in batches)
    return downloads.send(request, downloads.csv_lines(_COLUMNS, rows), "calls", "csv")


class _Page(pieces.Page):
    """A tab of the page."""

    # On the other tabs, there is none of these.
    unused: unused.Unused | None = None
    usage: _Usage | None = None
    calls: tuple[Line, ...] = ()
    news: News | None = None
    tools: tuple[pieces.Choice, ...] = ()
    outcomes: tuple[pieces.Choice, ...] = ()
    session = download_url = ""

    def __init__(self, request: http.Request, criteria: Mapping[str, Any]) -> None:
        self.tab, path = criteria["view"], request.path
        if self.tab == UNUSED:
            # Tools that were not called have neither sessions nor outcomes.
            criteria = {**criteria, "session": "", "tool": "", "outcome": ""}
        today = timezone.localdate()
        chosen, last = periods.days(criteria)
        first = chosen or usual_first_day(last or today, **_filters(criteria))
        tab_query, time_range = _address_parameters(criteria), periods.time_range(first, last)
        parameters = _filters(criteria) | periods.address_parameters(criteria)
        self.views = VIEWS.present(request, criteria)
        self.tabs = tuple(_tabs(criteria, path))
        self.agents = pieces.choices(_choices("agent", criteria["agent"]), criteria["agent"], "Any agent")
        self.period = periods.Choices(criteria, first=first)
        self.is_filtered = bool(parameters)
        if self.tab == UNUSED:
            may_flip = rights.flip_check(request.user)
            self.unused = unused.Unused(criteria, tab_query, time_range, path, may_flip)
            self.matches = self.unused.matches
            return
        matching, size = _filters(criteria) | time_range, PAGE_SIZE if self.tab == LOG else 1
        log = usage.page(**matching, older_than=criteria["older"] or None, size=size)
        self.tools = pieces.choices(_choices("tool", criteria["tool"]), criteria["tool"], "Any tool")
        self.outcomes = pieces.choices(
            {usage.ERROR: "Errors"}
            | {name: word.capitalize() for name, (_, word) in call_outcomes.OUTCOMES.items()},
            criteria["outcome"],
            "Any outcome",
        )
        self.session = criteria["session"]
        self.download_url = reverse("web:download_calls", query=parameters)
        if not (criteria["older"] or (last and last < today)):
            self.news = News(path, tab_query, newest=log.calls[0].id if log.calls else 0, words="")
        if self.tab == LOG:
            index, period = access_index.load(), periods.address_parameters(criteria)
            tools, agents = index.catalog.tools, {access.agent.key for access in index.agents}
            self.matches = f"{words.counted(log.total, 'call')}, newest first" if log.total else "0 calls"
            self.calls = tuple(Line(call, tools, agents, period) for call in log.calls)
            self.pages = _pages(log, tab_query, path, bool(criteria["older"]))
        else:
            self.usage = _Usage(criteria, path, matching, (first, min(last or today, today)))
            self.matches = self.usage.matches


def _tabs(criteria: Mapping[str, Any], path: str) -> Iterable[tuple[str, str, bool]]:
    """Yield the title and the link of each tab, which keeps the filters that the tab has, and whether it is open."""
    for name, title in TABS.items():
        names = ("agent",) if name == UNUSED else VIEWS.names
        query = {"view": name} | {key: criteria[key] for key in names} | periods.address_parameters(criteria)
        yield title, filters.address(path, query), name == criteria["view"]


class _Usage(pieces.View):
    """The charts, and the figures of each tool."""

    def __init__(
        self,
        criteria: Mapping[str, Any],
        path: str,
        matching: Mapping[str, Any],
        days: tuple[dt.date, dt.date],
    ) -> None:
        by_tool = usage.by_tool(**matching, timed=None if criteria["every"] else MAX_TOOLS + 2)
        parameters = _address_parameters(criteria)
        is_whole = bool(criteria["every"]) or len(by_tool) <= MAX_TOOLS + 2
        count, errors = sum(tool.calls for tool in by_tool), sum(tool.errors for tool in by_tool)
        self.matches = words.counted(count, "call") + (
            f", {words.counted(errors, 'error')}" if errors else ""
        )
        self.day_url = f"{path}?{urlencode({'view': LOG, **_filters(criteria), 'period': periods.CUSTOM})}&"
        self.chart = (
            charts.by_hour(usage.by_hour(**matching), days[0])
            if days[0] == days[1]
            else charts.by_day(usage.by_day(**matching), *days)
        )
        self.lines = charts.lines(usage.durations_by_day(**matching), *days)
        log = {"view": LOG, **parameters}
        known = access_index.load().catalog.tools
        most = (
            max((tool.calls for tool in by_tool), default=0),
            max((tool.slow or 0 for tool in by_tool), default=0),
        )
        shown = by_tool if is_whole else by_tool[:MAX_TOOLS]
        self.figures = [
            _Figures(tool, known, f"{path}?{urlencode({**log, 'tool': tool.tool})}", *most) for tool in shown
        ]
        self.every_url = "" if is_whole else f"{path}?{urlencode({**parameters, 'every': 'yes'})}"
        self.total = len(by_tool)


class _Figures(pieces.View):
    """The figures of one tool, beside the most calls and the longest duration of any."""

    def __init__(
        self, tool: usage.OfTool, known: Collection[str], calls_url: str, most: int, slowest: int
    ) -> None:
        key = tool.tool
        self.usage = tool
        self.mark = "" if key in known else "Toolbelt's own" if key in keys.RESERVED else "unknown"
        self.calls_url = calls_url
        self.share = _percent(tool.calls, most)
        self.error_share = f"{_percent(tool.errors, tool.calls)} %" if tool.errors else ""
        self.slowness = _percent(tool.slow or 0, slowest)


def _count_new_calls(criteria: Mapping[str, Any], path: str) -> News:
    """Return the number of calls since the ``newer`` one that the page shows."""
    newest = criteria["newer"] or 0
    # Older calls are not counted then, so the default first day, which may be slow to find, is not needed.
    first, last = periods.days(criteria)
    since = first or (None if newest else usual_first_day(last or timezone.localdate(), **_filters(criteria)))
    period = periods.time_range(since, last)
    count = usage.count_newer(newest, maximum=MAX_NEWS, **_filters(criteria), **period)
    capped = f"{words.number(count)} or more new calls" if count == MAX_NEWS else ""
    text = capped or words.counted(count, "new call")
    return News(path, _address_parameters(criteria), newest=newest, words=text if count else "")


class News(pieces.View):
    """The number of new calls in words, and the links that count and show them."""

    def __init__(self, path: str, parameters: Mapping[str, Any], *, newest: int, words: str) -> None:
        self.words = words
        self.url = f"{path}?{urlencode({**parameters, 'newer': newest})}"
        self.show_url = filters.address(path, parameters)


def _choices(field: str, chosen: str) -> dict[str, str]:
    """Return the names to choose from, at most :data:`MAX_CHOICES` besides the chosen one."""
    names = usage.logged_values(field)
    if len(names) > MAX_CHOICES:
        names = sorted({*names[:MAX_CHOICES], *([chosen] if chosen in names else [])})
    return {name: texts.visible(name) for name in names}


def _address_parameters(criteria: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tab and its filters for the links to its other pages."""
    tab = {"view": criteria["view"]} if criteria["view"] else {}
    return tab | _filters(criteria) | periods.address_parameters(criteria)


def _filters(criteria: Mapping[str, Any]) -> dict[str, Any]:
    return {name: criteria[name] for name in VIEWS.names if criteria[name]}


def usual_first_day(last: dt.date, **criteria: Any) -> dt.date:
    """Return the default first day: the earliest usual one with few enough calls to add up."""
    return first_day(
        last, lambda first: usage.exceeds(MAX_CALLS, **criteria, **periods.time_range(first, last))
    )


def first_day(last: dt.date, exceeds: Callable[[dt.date], bool]) -> dt.date:
    """Return the first day of the longest usual period; ``exceeds`` tells whether there are more than :data:`MAX_CALLS`
    since a day.
    """
    *long, shortest = [last - dt.timedelta(days=days - 1) for days in USUAL_DAYS]
    return next((first for first in long if not exceeds(first)), shortest)


class Line(pieces.View):
    """One call; ``tools`` and ``agents`` are those that exist. Its session links to the calls of the session in this
    period.
    """

    def __init__(
        self, call: usage.Call, tools: Collection[str], agents: Collection[str], period: Mapping[str, str]
    ) -> None:
        state, word = call_outcomes.of(call.outcome)
        decision = {"view": "why", "tool": call.tool, "at": call.at.isoformat()}
        self.call = call
        self.agent_url = reverse("web:agent_access", args=[call.agent]) if call.agent in agents else ""
        self.tool_url = reverse("web:tool", args=[call.tool]) if call.tool in tools else ""
        self.state = state
        self.outcome = word
        # Whether it was refused because the agent did not have the tool.
        self.is_lacked = call.outcome in _LACKED and bool(call.reason) and call.reason not in reasons.GRANTING
        # Why the agent had the tool or not at the time of the call.
        self.why_url = (
            reverse("web:preview", args=[call.agent], query=decision)
            if call.tool in tools and call.agent in agents
            else ""
        )
        self.session_url = session_url(call.agent, call.session, **period) if call.session else ""


class _CallPage(Line, pieces.Page):
    """One call as it was recorded."""

    def __init__(self, request: http.Request, record: usage.Call) -> None:
        index = access_index.load()
        agents = {access.agent.key for access in index.agents}
        super().__init__(record, index.catalog.tools, agents, period_since(record.at))
        self.error = texts.text(record.error) if record.error else None
        self.asked = asked_calls.of_call(record) if record.rule else None
        self.may_decide = self.asked is not None and rights.may_decide(request.user, record.agent)
        self.has_plugin = record.plugin in index.catalog.plugins
        # The roll-out in whose new arm the session was; the draft may be gone.
        self.trial = None if record.trial is None else trials.numbered(record.trial)
        fields = (record.chosen_fields or {}).items()
        self.chosen_fields = [(name, json.dumps(value, ensure_ascii=False)) for name, value in fields]
        self.arguments = None
        if record.arguments is not None:
            arguments = json.dumps(record.arguments, indent=2, ensure_ascii=False, sort_keys=True)
            self.arguments = texts.text(arguments)


def period_since(at: dt.datetime) -> dict[str, str]:
    """Return the period from the day before a time on, because a session may have begun before midnight."""
    since = timezone.localdate(at) - dt.timedelta(days=1)
    return {"period": periods.CUSTOM, "since": since.isoformat()}


def session_url(agent: str, session: str, **period: str) -> str:
    """Return the URL of the calls of one session."""
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
