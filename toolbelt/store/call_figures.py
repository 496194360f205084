"""Statistics of calls, by tool and by day, computed by the database.

Durations cover only calls that ran: refused calls take no time and would distort them.
"""

from __future__ import annotations

import bisect
import datetime as dt
import functools
import itertools
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Unpack

from django.db import models as orm
from django.db.models import functions

from toolbelt.store import call_records as calls
from toolbelt.store import days, hours

# Outcomes for which the tool, or the server behind it, failed; other failures were refused before they ran.
FAILED = ("tool-unavailable", "timed-out", "tool-failed")
RAN = ("ok", "timed-out", "tool-failed")
NOT_REFUSED = (*calls.NO_ERROR, *FAILED)
_SHARES = (50, 95)


@dataclass(frozen=True, slots=True, kw_only=True)
class OfTool:
    """The calls of one tool. ``median`` and ``slow`` are the p50 and p95 of the durations, in milliseconds, of the
    calls that ran; None if none ran.
    """

    tool: str
    calls: int
    refused: int
    failed: int
    last: dt.datetime
    median: int | None
    slow: int | None

    @property
    def errors(self) -> int:
        """Return the number of calls that failed or were refused."""
        return self.refused + self.failed


@dataclass(frozen=True, slots=True, kw_only=True)
class OfDay:
    """The calls of one day, in the installation's time zone."""

    day: dt.date
    calls: int
    refused: int
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OfHour:
    """The calls of one hour; ``hour`` is its number since the beginning of the period, from 0."""

    hour: int
    calls: int
    refused: int
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorsOfHour:
    """The calls of one plugin in one hour, and those of them that were errors, with the first and the last error."""

    plugin: str
    hour: int
    calls: int
    errors: int
    first: dt.datetime | None
    last: dt.datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Equal errors: of one plugin, agent and tool, with one message."""

    plugin: str
    agent: str
    tool: str
    error: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DurationsOfDay:
    """The p50 and p95 of the durations, in milliseconds, of the calls of one day that ran."""

    day: dt.date
    median: int
    slow: int


def by_tool(*, timed: int | None = None, **filters: Unpack[calls.CallQuery]) -> list[OfTool]:
    """Return the totals of the calls that match, most called first. Uses two queries.

    Durations are computed for the ``timed`` most called tools (None: all).
    """
    matching = calls.matching(**filters)
    return _by_tool(matching, timed)


def of_tools(tools: Iterable[str], *, since: dt.datetime | None = None) -> dict[str, OfTool]:
    """Return the totals of these tools, by key; those without calls are missing. Uses two queries."""
    matching = calls.matching(since=since).filter(tool__in=list(tools))
    return {figures.tool: figures for figures in _by_tool(matching, None)}


def _by_tool(matching: orm.QuerySet[Any], timed: int | None) -> list[OfTool]:
    counted = list(
        matching.order_by()
        .values("tool")
        .annotate(**_counts(), last=orm.Max("at"))
        .order_by("-calls", "tool")
    )
    names = [row["tool"] for row in counted[:timed]]
    durations = _durations(matching if timed is None else matching.filter(tool__in=names), "tool")
    return [
        OfTool(**row, median=durations.get((row["tool"], 50)), slow=durations.get((row["tool"], 95)))
        for row in counted
    ]


def by_day(**filters: Unpack[calls.CallQuery]) -> list[OfDay]:
    """Return the totals of the calls that match, by day, oldest first; days without calls are missing."""
    matching = calls.matching(**filters)
    counted = (
        matching.order_by()
        .annotate(day=days.of("at", filters.get("since"), filters.get("until")))
        .values("day")
        .annotate(**_counts())
    )
    return [OfDay(**row) for row in counted.order_by("day")]


def by_hour(**filters: Unpack[calls.CallQuery]) -> list[OfHour]:
    """Return the totals of the calls that match, by hour since ``since``, in order; hours without calls are missing."""
    since = filters.get("since")
    if since is None:
        raise ValueError("Hours are counted from the beginning of a period.")
    matching = calls.matching(**filters)
    counted = matching.order_by().annotate(hour=hours.HoursSince("at", since)).values("hour")
    return [OfHour(**row) for row in counted.annotate(**_counts()).order_by("hour")]


def hours_with_errors(since: dt.datetime, *, minimum: int) -> list[tuple[str, int]]:
    """Return the hours since ``since`` with at least this many errors of a plugin, as (plugin, hour), in order."""
    matching = calls.matching(since=since, outcome=calls.ERROR).order_by()
    counted = matching.annotate(hour=hours.HoursSince("at", since)).values("plugin", "hour")
    frequent = counted.annotate(count=orm.Count("id")).filter(count__gte=minimum).order_by("plugin", "hour")
    return list(frequent.values_list("plugin", "hour"))


def errors_by_hour(
    plugins: Iterable[str], since: dt.datetime, periods: Iterable[tuple[dt.datetime, dt.datetime]]
) -> list[ErrorsOfHour]:
    """Return the calls and errors of these plugins in several periods, by hour since ``since``. Uses one query."""
    is_error = ~orm.Q(outcome__in=calls.NO_ERROR)
    any_period = _any(orm.Q(at__gte=first, at__lt=end) for first, end in periods)
    matching = calls.matching().filter(any_period, plugin__in=list(plugins)).order_by()
    counted = (
        matching.annotate(hour=hours.HoursSince("at", since))
        .values("plugin", "hour")
        .annotate(
            calls=orm.Count("id"),
            errors=orm.Count("id", filter=is_error),
            first=orm.Min("at", filter=is_error),
            last=orm.Max("at", filter=is_error),
        )
    )
    return [ErrorsOfHour(**row) for row in counted.order_by("plugin", "hour")]


def most_frequent_errors(
    during: Mapping[str, tuple[dt.datetime, dt.datetime]], *, maximum: int
) -> list[Errors]:
    """Return the errors of each plugin from its first to its last time, the most frequent first. Uses one query."""
    each = (orm.Q(plugin=plugin, at__gte=first, at__lte=last) for plugin, (first, last) in during.items())
    matching = calls.matching(outcome=calls.ERROR).filter(_any(each)).order_by()
    counted = matching.values("plugin", "agent", "tool", "error").annotate(count=orm.Count("id"))
    return [Errors(**row) for row in counted.order_by("-count", "plugin", "agent", "tool", "error")[:maximum]]


def durations_by_day(**filters: Unpack[calls.CallQuery]) -> list[DurationsOfDay]:
    """Return the durations of the calls that match, by day, oldest first; days on which none ran are missing. Uses one
    query.
    """
    matching = calls.matching(**filters)
    # As text, because there are many rows of each day, and a date would be parsed for each.
    day = functions.Cast(days.of("at", filters.get("since"), filters.get("until")), orm.CharField())
    durations = _durations(matching.annotate(day=day), "day")
    return [
        DurationsOfDay(day=dt.date.fromisoformat(day), median=durations[day, 50], slow=durations[day, 95])
        for day in sorted({day for day, _ in durations})
    ]


def called(**filters: Unpack[calls.CallQuery]) -> set[tuple[str, str]]:
    """Return the calls that were made at least once, as (agent, tool)."""
    matching = calls.matching(**filters)
    return set(matching.order_by().values_list("agent", "tool").distinct())


def by_agent_and_tool(**filters: Unpack[calls.CallQuery]) -> dict[tuple[str, str], int]:
    """Return the number of calls of each tool by each agent, as (agent, tool); those without calls are missing."""
    counted = (
        calls.matching(**filters).order_by().values_list("agent", "tool").annotate(count=orm.Count("id"))
    )
    return {(agent, tool): count for agent, tool, count in counted}


def called_tools(since: dt.datetime) -> set[str]:
    """Return the keys of the tools that were called since then."""
    # Only the newest call of each tool is read, which an index names: ids follow the time of calls.
    newest = calls.matching().order_by().values("tool").annotate(newest=orm.Max("id")).values("newest")
    return set(calls.matching(since=since).filter(pk__in=newest).order_by().values_list("tool", flat=True))


def logged_values(column: str) -> list[str]:
    """Return the values of ``agent`` or ``tool`` in the log, sorted, to filter by."""
    return sorted(calls.matching().order_by().values_list(column, flat=True).distinct())


def _any(conditions: Iterable[orm.Q]) -> orm.Q:
    return functools.reduce(operator.or_, conditions, orm.Q(pk__in=()))


def _counts() -> dict[str, orm.Aggregate]:
    return {
        "calls": orm.Count("id"),
        "refused": orm.Count("id", filter=~orm.Q(outcome__in=NOT_REFUSED)),
        "failed": orm.Count("id", filter=orm.Q(outcome__in=FAILED)),
    }


def _durations(matching: orm.QuerySet[orm.Model], by: str) -> dict[tuple[Any, int], int]:
    """Return the p50 and p95 durations by tool or day: those at these positions when calls are sorted by duration.

    SQLite has no percentile function, and ranking each call costs more than counting equal ones.
    """
    rows = (
        matching.filter(outcome__in=RAN)
        .order_by()
        .values_list(by, "duration_ms")
        .annotate(count=orm.Count("id"))
        .order_by(by, "duration_ms")
    )
    result: dict[tuple[Any, int], int] = {}
    for group, group_rows in itertools.groupby(rows, key=lambda row: row[0]):
        durations, counts = zip(*[(duration, count) for _, duration, count in group_rows], strict=True)
        totals = list(itertools.accumulate(counts))
        for share in _SHARES:
            # The position of the percentile, in whole numbers.
            position = (totals[-1] * share + 99) // 100
            result[group, share] = durations[bisect.bisect_left(totals, position)]
    return result
