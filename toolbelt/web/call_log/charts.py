"""The charts of calls by day or by hour, and by duration."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence

from django.utils import timezone

from toolbelt.control.reports import usage
from toolbelt.web.kit import periods, pieces, words

MAX_DAYS = 92
# In units of the viewBox.
HEIGHT, STEP, WIDTH = 100, 12, 9
# The most days that are named below a chart, and every how many hours are.
MAX_LABELS, HOURS_BETWEEN_LABELS = 5, 6
HOURS = 24
_HOUR = dt.timedelta(hours=1)


def by_day(usage_by_day: Sequence[usage.OfDay], first: dt.date, last: dt.date) -> Chart | None:
    """Return a chart with a bar for each day, including days without calls; None if there are no calls."""
    if not usage_by_day:
        return None
    days = every_day(usage_by_day, first, last)
    busiest = max(usage_by_day, key=lambda day: day.calls)
    bars = [Bar(day, f"{day.day:%A, %-d %B}", day.day) for day in days]
    width = _width(bars)
    return Chart(
        bars,
        "day",
        _labels([f"{day.day:%-d %b}" for day in days], width, WIDTH / 2),
        f"in {len(days)} days, most on {busiest.day:%-d %B}: {words.number(busiest.calls)}",
    )


def by_hour(usage_by_hour: Sequence[usage.OfHour], day: dt.date) -> Chart | None:
    """Return a chart with a bar for each hour of a day in the reader's time zone, of which there are 23 or 25 if the
    clock changes; None if there are no calls.
    """
    if not usage_by_hour:
        return None
    # In UTC, because times of one zone are subtracted as if no clock changed.
    start, end = (periods.midnight(day + dt.timedelta(days=days)).astimezone(dt.UTC) for days in (0, 1))
    starts = [timezone.localtime(start + number * _HOUR) for number in range(-((start - end) // _HOUR))]
    # On other days, the hour alone says which one it is.
    clock = "%H:%M" if len(starts) == HOURS else "%H:%M %Z"
    by_number = {hour.hour: hour for hour in usage_by_hour}
    hours = [
        by_number.get(number) or usage.OfHour(hour=number, calls=0, refused=0, failed=0)
        for number in range(len(starts))
    ]
    names = [f"{at:{clock}}" for at in starts]
    bars = [Bar(hour, name, day) for hour, name in zip(hours, names, strict=True)]
    busiest = max(usage_by_hour, key=lambda hour: hour.calls)
    width = _width(bars)
    labels = [
        (f"{100 * number * STEP / width:.1f}", "start", f"{at:%H:%M}")
        for number, at in enumerate(starts)
        if at.hour % HOURS_BETWEEN_LABELS == 0 and at.minute == 0
    ]
    most = f"most at {names[busiest.hour]}: {words.number(busiest.calls)}"
    return Chart(bars, "hour", labels, f"on {day:%-d %B}, {most}")


class Bar(pieces.View):
    """One bar, with the day that it links to."""

    def __init__(self, calls: usage.OfDay | usage.OfHour, name: str, day: dt.date) -> None:
        self.name = name
        self.calls = calls.calls
        self.refused = calls.refused
        self.failed = calls.failed
        self.day = day.isoformat()


def _width(bars: Sequence[Bar]) -> int:
    return STEP * len(bars) - (STEP - WIDTH)


class Chart(pieces.View):
    """A chart with a bar for each day or hour."""

    def __init__(
        self, bars: Sequence[Bar], unit: str, labels: Sequence[tuple[str, str, str]], description: str
    ) -> None:
        top, total = _top(max(bar.calls for bar in bars)), sum(bar.calls for bar in bars)
        self.unit = unit
        self.bars = [(index * STEP, bar, _parts(bar, top)) for index, bar in enumerate(bars)]
        self.width = _width(bars)
        self.scale = tuple(map(words.number, (top, top // 2, 0)))
        self.labels = labels
        self.words = f"{words.counted(total, 'call')} {description}"


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


def lines(durations: Sequence[usage.DurationsOfDay], first: dt.date, last: dt.date) -> Lines | None:
    """Return a chart of durations as two lines through the days with calls; None for fewer than two such days."""
    days = _days(first, last)
    by_day = {day.day: day for day in durations}
    calls = [(index, by_day[date]) for index, date in enumerate(days) if date in by_day]
    if len(calls) < 2:
        return None
    return Lines(calls, days)


class Lines(pieces.View):
    """A chart of durations: the median and the 95th percentile of the ``calls`` of each day, by the day's index."""

    def __init__(self, calls: Sequence[tuple[int, usage.DurationsOfDay]], days: Sequence[dt.date]) -> None:
        top, self.width = _top(max(day.slow for _, day in calls)), STEP * (len(days) - 1)
        slowest = max((day for _, day in calls), key=lambda day: day.slow)

        def points(value: Callable[[usage.DurationsOfDay], int]) -> str:
            return " ".join(
                f"{index * STEP},{HEIGHT - round(HEIGHT * value(day) / top)}" for index, day in calls
            )

        self.median, self.slow = points(lambda day: day.median), points(lambda day: day.slow)
        self.dots = [(index * STEP - STEP // 2, day) for index, day in calls]
        self.scale = tuple(map(words.duration, (top, top // 2, 0)))
        self.labels = _labels([f"{day:%-d %b}" for day in days], self.width, 0)
        self.words = (
            f"Duration by day: slowest on {slowest.day:%-d %B}, p95 "
            f"{words.duration(slowest.slow)}, p50 {words.duration(slowest.median)}"
        )


def _top(maximum: int) -> int:
    """Return the round, even end of a scale for numbers up to ``maximum``."""
    unit = 2
    while unit * 5 < maximum:
        unit *= 10
    return next(unit * times for times in (1, 2, 3, 4, 5) if unit * times >= maximum)


def _labels(names: Sequence[str], width: float, middle: float) -> list[tuple[str, str, str]]:
    """Return the names below a chart: the first, the last, and some between, each with its position in percent and the
    anchor of its text.
    """
    last = len(names) - 1
    count = min(last, MAX_LABELS - 1)
    indexes = sorted({round(last * number / count) for number in range(count + 1)}) if count else [0]
    return [
        (
            f"{100 * (index * STEP + middle) / width:.1f}" if width else "50",
            "middle" if count < 1 or 0 < index < last else "start" if not index else "end",
            names[index],
        )
        for index in indexes
    ]


def _parts(bar: Bar, maximum: int) -> list[tuple[str, int, int]]:
    """Return the parts of a bar from the bottom: the name, the top and the height of each."""
    parts, bottom = [], HEIGHT
    counts = {"failed": bar.failed, "refused": bar.refused, "good": bar.calls - bar.refused - bar.failed}
    for name, count in counts.items():
        if count:
            # A few failed calls must remain visible.
            height = max(2, round(HEIGHT * count / maximum))
            bottom -= height
            parts.append((name, max(0, bottom), height))
    return parts
