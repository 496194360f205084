"""The charts of calls by day and by duration."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence

from toolbelt.control.reports import usage
from toolbelt.web.kit import pieces, words

MAX_DAYS = 92
# In units of their own.
HEIGHT, STEP, WIDTH = 100, 12, 9
# So many days are named below a chart.
MAX_LABELS = 5


def chart(usage_by_day: Sequence[usage.OfDay], first: dt.date, last: dt.date) -> pieces.View | None:
    """Draw a bar a day; days without calls are there, and where there are too many days, the last of them."""
    if not usage_by_day or last < first:
        return None
    by_day = {usage.day: usage for usage in usage_by_day}
    days = _days(first, last)
    count = len(days)
    maximum = max((by_day[day].calls for day in days if day in by_day), default=0)
    if not maximum:
        return None
    top, width = _top(maximum), STEP * count - (STEP - WIDTH)
    total = sum(day.calls for day in usage_by_day)
    busiest = max(usage_by_day, key=lambda day: day.calls)
    return pieces.View(
        bars=tuple(_bar(place, day, by_day.get(day), top) for place, day in enumerate(days)),
        width=width,
        scale=tuple(map(words.number, (top, top // 2, 0))),
        days=_labels(days, width, WIDTH / 2),
        words=f"{words.number(total)} calls in {count} days, "
        f"most on {busiest.day:%-d %B}: {words.number(busiest.calls)}",
    )


def _days(first: dt.date, last: dt.date) -> list[dt.date]:
    """List the days of a chart: where there are too many, the last of them."""
    count = min((last - first).days + 1, MAX_DAYS)
    return [last - dt.timedelta(days=back) for back in range(count - 1, -1, -1)]


def lines(durations: Sequence[usage.DurationsOfDay], first: dt.date, last: dt.date) -> pieces.View | None:
    """Draw how long calls took as two lines, from day to day on which any ran."""
    days = _days(first, last) if last >= first else []
    by_day = {day.day: day for day in durations}
    ran = [(place, by_day[date]) for place, date in enumerate(days) if date in by_day]
    if len(ran) < 2:
        return None
    top, width = _top(max(day.slow for _, day in ran)), STEP * (len(days) - 1)
    slowest = max((day for _, day in ran), key=lambda day: day.slow)

    def points(took: Callable[[usage.DurationsOfDay], int]) -> str:
        return " ".join(f"{place * STEP},{HEIGHT - round(HEIGHT * took(day) / top)}" for place, day in ran)

    return pieces.View(
        median=points(lambda day: day.median),
        slow=points(lambda day: day.slow),
        dots=tuple(
            pieces.View(
                x=place * STEP,
                left=place * STEP - STEP // 2,
                date=day.day.isoformat(),
                day=f"{day.day:%A, %-d %B}",
                median=words.duration(day.median),
                slow=words.duration(day.slow),
            )
            for place, day in ran
        ),
        width=width,
        scale=tuple(map(words.duration, (top, top // 2, 0))),
        days=_labels(days, width, 0),
        words=f"Duration by day: slowest on {slowest.day:%-d %B}, p95 "
        f"{words.duration(slowest.slow)}, p50 {words.duration(slowest.median)}",
    )


def _top(maximum: int) -> int:
    """Return the round and even number at which a scale for numbers up to ``maximum`` ends."""
    unit = 2
    while unit * 5 < maximum:
        unit *= 10
    return next(unit * times for times in (1, 2, 3, 4, 5) if unit * times >= maximum)


def _labels(days: Sequence[dt.date], width: float, middle: float) -> tuple[pieces.View, ...]:
    """Return the days that are named below a chart: the first, the last, and some between, each with its place in
    percent.
    """
    last = len(days) - 1
    count = min(last, MAX_LABELS - 1)
    places = sorted({round(last * number / count) for number in range(count + 1)}) if count else [0]
    return tuple(
        pieces.View(
            at=f"{100 * (place * STEP + middle) / width:.1f}" if width else "50",
            anchor="middle" if count < 1 or 0 < place < last else "start" if not place else "end",
            words=f"{days[place]:%-d %b}",
        )
        for place in places
    )


def _bar(place: int, day: dt.date, calls: usage.OfDay | None, top: int) -> pieces.View:
    total, refused, failed = (calls.calls, calls.refused, calls.failed) if calls else (0, 0, 0)
    # A few failed calls must remain visible.
    heights = [
        max(2, round(HEIGHT * count / top)) if count else 0
        for count in (failed, refused, total - refused - failed)
    ]
    bottoms = [HEIGHT - sum(heights[: number + 1]) for number in range(3)]
    wrong = f", {words.number(refused)} refused, {words.number(failed)} failed" if refused or failed else ""
    return pieces.View(
        x=place * STEP,
        date=day.isoformat(),
        day=f"{day:%A, %-d %B}",
        words=f"{words.counted(total, 'call')}{wrong}",
        calls=total,
        refused_calls=refused,
        failed_calls=failed,
        good_y=max(0, bottoms[2]),
        good=heights[2],
        refused_y=bottoms[1],
        refused=heights[1],
        failed_y=bottoms[0],
        failed=heights[0],
    )
