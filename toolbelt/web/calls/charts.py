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
    days = every_day(usage_by_day, first, last)
    maximum = max((day.calls for day in days), default=0)
    if not maximum:
        return None
    top, width = _top(maximum), STEP * len(days) - (STEP - WIDTH)
    total = sum(day.calls for day in usage_by_day)
    busiest = max(usage_by_day, key=lambda day: day.calls)
    return pieces.View(
        bars=[(place * STEP, day, _parts(day, top)) for place, day in enumerate(days)],
        width=width,
        scale=tuple(map(words.number, (top, top // 2, 0))),
        days=_labels([day.day for day in days], width, WIDTH / 2),
        words=f"{words.number(total)} calls in {len(days)} days, "
        f"most on {busiest.day:%-d %B}: {words.number(busiest.calls)}",
    )


def every_day(usage_by_day: Sequence[usage.OfDay], first: dt.date, last: dt.date) -> list[usage.OfDay]:
    """Return the days of a chart, also those without calls."""
    by_day = {day.day: day for day in usage_by_day}
    return [
        by_day.get(day) or usage.OfDay(day=day, calls=0, refused=0, failed=0) for day in _days(first, last)
    ]


def _days(first: dt.date, last: dt.date) -> list[dt.date]:
    """List the days of a chart: where there are too many, the last of them."""
    count = min((last - first).days + 1, MAX_DAYS)
    return [last - dt.timedelta(days=back) for back in range(count - 1, -1, -1)]


def lines(durations: Sequence[usage.DurationsOfDay], first: dt.date, last: dt.date) -> pieces.View | None:
    """Draw how long calls took as two lines, from day to day on which any ran."""
    days = _days(first, last)
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
        dots=[(place * STEP - STEP // 2, day) for place, day in ran],
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


def _labels(days: Sequence[dt.date], width: float, middle: float) -> list[tuple[str, str, dt.date]]:
    """Return the days that are named below a chart: the first, the last, and some between, each with its place in
    percent and the side of it that is there.
    """
    last = len(days) - 1
    count = min(last, MAX_LABELS - 1)
    places = sorted({round(last * number / count) for number in range(count + 1)}) if count else [0]
    return [
        (
            f"{100 * (place * STEP + middle) / width:.1f}" if width else "50",
            "middle" if count < 1 or 0 < place < last else "start" if not place else "end",
            days[place],
        )
        for place in places
    ]


def _parts(day: usage.OfDay, top: int) -> list[tuple[str, int, int]]:
    """Return the parts of a bar, from the bottom: what they count, and where each begins and how high it is."""
    parts, bottom = [], HEIGHT
    counts = {"failed": day.failed, "refused": day.refused, "good": day.calls - day.refused - day.failed}
    for name, count in counts.items():
        if count:
            # A few failed calls must remain visible.
            height = max(2, round(HEIGHT * count / top))
            bottom -= height
            parts.append((name, max(0, bottom), height))
    return parts
