"""How are calls drawn: how many there were on each day, and how long they took?"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence

from toolbelt.control import usage
from toolbelt.web import words
from toolbelt.web.presenters import calls

MOST_DAYS = 92
# In units of their own.
HEIGHT, STEP, WIDTH = 100, 12, 9


def chart(found: Sequence[usage.OfDay], first: dt.date, last: dt.date) -> calls.Chart | None:
    """Draw a bar a day; days without calls are there, and where there are too many days, the last of them."""
    if not found or last < first:
        return None
    by_day = {one.day: one for one in found}
    days = _days(first, last)
    count = len(days)
    most = max((by_day[day].calls for day in days if day in by_day), default=0)
    if not most:
        return None
    total = sum(one.calls for one in found)
    busiest = max(found, key=lambda one: one.calls)
    return calls.Chart(
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
    count = min((last - first).days + 1, MOST_DAYS)
    return [last - dt.timedelta(days=back) for back in range(count - 1, -1, -1)]


def lines(found: Sequence[usage.TookOnDay], first: dt.date, last: dt.date) -> calls.Lines | None:
    """Draw how long calls took as two lines, from day to day on which any ran."""
    days = _days(first, last) if last >= first else []
    by_day = {one.day: one for one in found}
    ran = [(place, by_day[day]) for place, day in enumerate(days) if day in by_day]
    if len(ran) < 2:
        return None
    most = max(max(one.slow for _, one in ran), 1)
    slowest = max((one for _, one in ran), key=lambda one: one.slow)

    def points(took: Callable[[usage.TookOnDay], int]) -> str:
        return " ".join(f"{place * STEP},{HEIGHT - round(HEIGHT * took(one) / most)}" for place, one in ran)

    return calls.Lines(
        median=points(lambda one: one.median),
        slow=points(lambda one: one.slow),
        dots=tuple(
            calls.Dot(
                x=place * STEP,
                left=place * STEP - STEP // 2,
                words=f"{one.day:%A, %-d %B}: half took at most {words.duration(one.median)}, "
                f"95 of 100 at most {words.duration(one.slow)}",
            )
            for place, one in ran
        ),
        width=STEP * (len(days) - 1),
        words=f"How long calls took, by day: slowest on {slowest.day:%-d %B}, where 95 of 100 took at most "
        f"{words.duration(slowest.slow)}; half of them {words.duration(slowest.median)}",
        most=words.duration(most),
        first=f"{days[0]:%-d %b}",
        last=f"{days[-1]:%-d %b}",
    )


def _bar(place: int, day: dt.date, one: usage.OfDay | None, most: int) -> calls.Bar:
    total, refused, failed = (one.calls, one.refused, one.failed) if one else (0, 0, 0)
    # Whoever called in vain is not to vanish for being few.
    heights = [
        max(2, round(HEIGHT * count / most)) if count else 0
        for count in (failed, refused, total - refused - failed)
    ]
    bottoms = [HEIGHT - sum(heights[: number + 1]) for number in range(3)]
    wrong = f", {words.number(refused)} refused, {words.number(failed)} failed" if refused or failed else ""
    return calls.Bar(
        x=place * STEP,
        words=f"{day:%A, %-d %B}: {words.number(total)} call{'' if total == 1 else 's'}{wrong}",
        good_y=max(0, bottoms[2]),
        good=heights[2],
        refused_y=bottoms[1],
        refused=heights[1],
        failed_y=bottoms[0],
        failed=heights[0],
    )
