"""How do calls add up? By tool and by day, worked out in the database: the log is too long to be read.

Durations are of calls that ran: those that were refused take no time, and would only flatter.
"""

from __future__ import annotations

import bisect
import datetime as dt
import itertools
from dataclasses import dataclass
from typing import Any

from django.db import models as orm

from toolbelt.store import calls, days

# What the tool, or what is behind it, did not do; all else that is not ok was refused before it ran.
FAILED = ("tool-unavailable", "timed-out", "tool-failed")
RAN = ("ok", "timed-out", "tool-failed")
NOT_REFUSED = ("ok", "cancelled", *FAILED)
_SHARES = (50, 95)


@dataclass(frozen=True, slots=True, kw_only=True)
class OfTool:
    """The calls of one name. ``median`` and ``slow`` are the durations, in milliseconds, that half and 95 of 100 of
    the calls that ran did not pass; None where none ran.
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
        """Count what did not go as the caller wished."""
        return self.refused + self.failed


@dataclass(frozen=True, slots=True, kw_only=True)
class OfDay:
    """The calls of one day, as the clock of the installation has it."""

    day: dt.date
    calls: int
    refused: int
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TookOnDay:
    """How long the calls of one day took that ran: what half and 95 of 100 of them did not pass, in milliseconds."""

    day: dt.date
    median: int
    slow: int


def by_tool(
    *,
    agent: str = "",
    tool: str = "",
    outcome: str = "",
    since: dt.datetime | None = None,
    until: dt.datetime | None = None,
    timed: int | None = None,
) -> list[OfTool]:
    """Add up the calls for which all of this holds, most called first. Two queries.

    How long they took is worked out for so many of the most called ones (``timed``; None: for all).
    """
    matching = calls.asked_for(agent=agent, tool=tool, outcome=outcome, since=since, until=until)
    counted = list(
        matching.order_by()
        .values("tool")
        .annotate(**_counts(), last=orm.Max("at"))
        .order_by("-calls", "tool")
    )
    names = [one["tool"] for one in counted[:timed]]
    durations = _durations(matching if timed is None else matching.filter(tool__in=names), "tool")
    return [
        OfTool(**one, median=durations.get((one["tool"], 50)), slow=durations.get((one["tool"], 95)))
        for one in counted
    ]


def by_day(
    *,
    agent: str = "",
    tool: str = "",
    outcome: str = "",
    since: dt.datetime | None = None,
    until: dt.datetime | None = None,
) -> list[OfDay]:
    """Add up the calls for which all of this holds, by day, oldest first; days without calls are not there."""
    matching = calls.asked_for(agent=agent, tool=tool, outcome=outcome, since=since, until=until)
    counted = (
        matching.order_by().annotate(day=days.of("at", since, until)).values("day").annotate(**_counts())
    )
    return [OfDay(**one) for one in counted.order_by("day")]


def took_by_day(
    *,
    agent: str = "",
    tool: str = "",
    outcome: str = "",
    since: dt.datetime | None = None,
    until: dt.datetime | None = None,
) -> list[TookOnDay]:
    """Say how long the calls took for which all of this holds, by day, oldest first; days on which none ran are not
    there. One query.
    """
    matching = calls.asked_for(agent=agent, tool=tool, outcome=outcome, since=since, until=until)
    durations = _durations(matching.annotate(day=days.of("at", since, until)), "day")
    return [
        TookOnDay(day=day, median=durations[day, 50], slow=durations[day, 95])
        for day in sorted({day for day, _ in durations})
    ]


def called(
    *, agent: str = "", since: dt.datetime | None = None, until: dt.datetime | None = None
) -> set[tuple[str, str]]:
    """Give who called what at least once, as (agent, tool)."""
    matching = calls.asked_for(agent=agent, since=since, until=until)
    return set(matching.order_by().values_list("agent", "tool").distinct())


def said(column: str) -> list[str]:
    """Give what the log says in ``agent`` or ``tool``, sorted: what it can be filtered by."""
    return sorted(calls.asked_for().order_by().values_list(column, flat=True).distinct())


def _counts() -> dict[str, orm.Aggregate]:
    return {
        "calls": orm.Count("id"),
        "refused": orm.Count("id", filter=~orm.Q(outcome__in=NOT_REFUSED)),
        "failed": orm.Count("id", filter=orm.Q(outcome__in=FAILED)),
    }


def _durations(matching: orm.QuerySet[orm.Model], by: str) -> dict[tuple[Any, int], int]:
    """Give the durations at 50 and at 95 of 100, by tool or day: those at these places, when the calls stand in a row.

    SQLite has no percentiles of its own, and putting each call in its place costs more than counting equal ones.
    """
    rows = (
        matching.filter(outcome__in=RAN)
        .order_by()
        .values_list(by, "duration_ms")
        .annotate(count=orm.Count("id"))
        .order_by(by, "duration_ms")
    )
    found: dict[tuple[Any, int], int] = {}
    for one, of_one in itertools.groupby(rows, key=lambda row: row[0]):
        durations, counts = zip(*[(duration, count) for _, duration, count in of_one], strict=True)
        places = list(itertools.accumulate(counts))
        for share in _SHARES:
            # The smallest place that so many of a hundred do not pass, in whole numbers.
            place = (places[-1] * share + 99) // 100
            found[one, share] = durations[bisect.bisect_left(places, place)]
    return found
