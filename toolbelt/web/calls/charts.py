"""The charts of calls by day and by duration."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence

from toolbelt.control.reports import usage
from toolbelt.web.kit import pieces, words

MAX_DAYS = 92
# In units of their own.
HEIGHT, STEP, WIDTH = 100, 12, 9


def chart(usage_by_day: Sequence[usage.OfDay], first: dt.date, last: dt.date) -> pieces.View | None:
    """Draw a bar a day; days without calls are there, and where there are too many days, the last of them."""
    if not usage_by_day or last < first:
        return None
    by_day = {usage.day: usage for usage in usage_by_day}
    days = _days(first, last)
    count = len(days)
    most = max((by_day[day].calls for day in days if day in by_day), default=0)
    if not most:
        return None
    total = sum(day.calls for day in usage_by_day)
    busiest = max(usage_by_day, key=lambda day: day.calls)
    return pieces.View(
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
    count = min((last - first).days + 1, MAX_DAYS)
    return [last - dt.timedelta(days=back) for back in range(count - 1, -1, -1)]


def lines(durations: Sequence[usage.TookOnDay], first: dt.date, last: dt.date) -> pieces.View | None:
    """Draw how long calls took as two lines, from day to day on which any ran."""
    days = _days(first, last) if last >= first else []
    by_day = {day.day: day for day in durations}
    ran = [(place, by_day[date]) for place, date in enumerate(days) if date in by_day]
    if len(ran) < 2:
        return None
    most = max(max(day.slow for _, day in ran), 1)
    slowest = max((day for _, day in ran), key=lambda day: day.slow)

    def points(took: Callable[[usage.TookOnDay], int]) -> str:
        return " ".join(f"{place * STEP},{HEIGHT - round(HEIGHT * took(day) / most)}" for place, day in ran)

    return pieces.View(
        median=points(lambda day: day.median),
        slow=points(lambda day: day.slow),
        dots=tuple(
            pieces.View(
                x=place * STEP,
                left=place * STEP - STEP // 2,
                words=f"{day.day:%A, %-d %B}: p50 {words.duration(day.median)}, "
                f"p95 {words.duration(day.slow)}",
            )
            for place, day in ran
        ),
        width=STEP * (len(days) - 1),
        words=f"Duration by day: slowest on {slowest.day:%-d %B}, p95 "
        f"{words.duration(slowest.slow)}, p50 {words.duration(slowest.median)}",
        most=words.duration(most),
        first=f"{days[0]:%-d %b}",
        last=f"{days[-1]:%-d %b}",
    )


def _bar(place: int, day: dt.date, calls: usage.OfDay | None, most: int) -> pieces.View:
    total, refused, failed = (calls.calls, calls.refused, calls.failed) if calls else (0, 0, 0)
    # A few failed calls must remain visible.
    heights = [
        max(2, round(HEIGHT * count / most)) if count else 0
        for count in (failed, refused, total - refused - failed)
    ]
    bottoms = [HEIGHT - sum(heights[: number + 1]) for number in range(3)]
    wrong = f", {words.number(refused)} refused, {words.number(failed)} failed" if refused or failed else ""
    return pieces.View(
        x=place * STEP,
        words=f"{day:%A, %-d %B}: {words.number(total)} call{'' if total == 1 else 's'}{wrong}",
        good_y=max(0, bottoms[2]),
        good=heights[2],
        refused_y=bottoms[1],
        refused=heights[1],
        failed_y=bottoms[0],
        failed=heights[0],
    )
