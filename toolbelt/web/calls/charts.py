"""The charts of calls by day and by duration."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence

from toolbelt.control.reports import usage
from toolbelt.web.kit import pieces, words

MAX_DAYS = 92
# In units of the viewBox.
HEIGHT, STEP, WIDTH = 100, 12, 9
# The most days that are named below a chart.
MAX_LABELS = 5


def chart(usage_by_day: Sequence[usage.OfDay], first: dt.date, last: dt.date) -> pieces.View | None:
    """Return a chart with a bar for each day, including days without calls; None if there are no calls."""
    days = every_day(usage_by_day, first, last)
    maximum = max((day.calls for day in days), default=0)
    if not maximum:
        return None
    top, width = _top(maximum), STEP * len(days) - (STEP - WIDTH)
    total = sum(day.calls for day in usage_by_day)
    busiest = max(usage_by_day, key=lambda day: day.calls)
    return pieces.View(
        bars=[(index * STEP, day, _parts(day, top)) for index, day in enumerate(days)],
        width=width,
        scale=tuple(map(words.number, (top, top // 2, 0))),
        days=_labels([day.day for day in days], width, WIDTH / 2),
        words=f"{words.number(total)} calls in {len(days)} days, "
        f"most on {busiest.day:%-d %B}: {words.number(busiest.calls)}",
    )


def every_day(usage_by_day: Sequence[usage.OfDay], first: dt.date, last: dt.date) -> list[usage.OfDay]:
    """Return the days of a chart, including those without calls."""
    by_day = {day.day: day for day in usage_by_day}
    return [
        by_day.get(day) or usage.OfDay(day=day, calls=0, refused=0, failed=0) for day in _days(first, last)
    ]


def _days(first: dt.date, last: dt.date) -> list[dt.date]:
    """Return the days of a chart, at most the last :data:`MAX_DAYS`."""
    count = min((last - first).days + 1, MAX_DAYS)
    return [last - dt.timedelta(days=back) for back in range(count - 1, -1, -1)]


def lines(durations: Sequence[usage.DurationsOfDay], first: dt.date, last: dt.date) -> pieces.View | None:
    """Return a chart of durations as two lines through the days with calls; None for fewer than two such days."""
    days = _days(first, last)
    by_day = {day.day: day for day in durations}
    calls = [(index, by_day[date]) for index, date in enumerate(days) if date in by_day]
    if len(calls) < 2:
        return None
    top, width = _top(max(day.slow for _, day in calls)), STEP * (len(days) - 1)
    slowest = max((day for _, day in calls), key=lambda day: day.slow)

    def points(value: Callable[[usage.DurationsOfDay], int]) -> str:
        return " ".join(f"{index * STEP},{HEIGHT - round(HEIGHT * value(day) / top)}" for index, day in calls)

    return pieces.View(
        median=points(lambda day: day.median),
        slow=points(lambda day: day.slow),
        dots=[(index * STEP - STEP // 2, day) for index, day in calls],
        width=width,
        scale=tuple(map(words.duration, (top, top // 2, 0))),
        days=_labels(days, width, 0),
        words=f"Duration by day: slowest on {slowest.day:%-d %B}, p95 "
        f"{words.duration(slowest.slow)}, p50 {words.duration(slowest.median)}",
    )


def _top(maximum: int) -> int:
    """Return the round, even end of a scale for numbers up to ``maximum``."""
    unit = 2
    while unit * 5 < maximum:
        unit *= 10
    return next(unit * times for times in (1, 2, 3, 4, 5) if unit * times >= maximum)


def _labels(days: Sequence[dt.date], width: float, middle: float) -> list[tuple[str, str, dt.date]]:
    """Return the days to name below a chart: the first, the last, and some between, each with its position in percent
    and the anchor of its text.
    """
    last = len(days) - 1
    count = min(last, MAX_LABELS - 1)
    indexes = sorted({round(last * number / count) for number in range(count + 1)}) if count else [0]
    return [
        (
            f"{100 * (index * STEP + middle) / width:.1f}" if width else "50",
            "middle" if count < 1 or 0 < index < last else "start" if not index else "end",
            days[index],
        )
        for index in indexes
    ]


def _parts(day: usage.OfDay, maximum: int) -> list[tuple[str, int, int]]:
    """Return the parts of a bar from the bottom: the name, the top and the height of each."""
    parts, bottom = [], HEIGHT
    counts = {"failed": day.failed, "refused": day.refused, "good": day.calls - day.refused - day.failed}
    for name, count in counts.items():
        if count:
            # A few failed calls must remain visible.
            height = max(2, round(HEIGHT * count / maximum))
            bottom -= height
            parts.append((name, max(0, bottom), height))
    return parts
