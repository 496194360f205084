"""When is "in 10 minutes", how long is "2 hours", and how is a time written? No clock: now is always given."""

from __future__ import annotations

import datetime as dt
import re

from toolbelt import ToolError

FURTHEST = dt.timedelta(days=5 * 366)
SHORTEST_INTERVAL = dt.timedelta(minutes=1)
LONGEST_INTERVAL = dt.timedelta(days=366)

_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_PART = (
    r"(?:\d{1,7}\s{0,4}|an?\s{1,4})(?:s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|wks?|weeks?)"
)
_DURATION = re.compile(rf"{_PART}(?:\s{{0,4}}(?:,|and)?\s{{0,4}}{_PART}){{0,9}}", re.IGNORECASE | re.ASCII)
_PIECE = re.compile(r"(\d+|an?(?=\s))\s*([smhdw])[a-z]*", re.IGNORECASE | re.ASCII)
_FORMS = (
    "Write a time with its zone, such as 2030-05-01T09:00:00+02:00, or a duration, such as 'in 10 minutes'."
)


def when(text: str, now: dt.datetime) -> dt.datetime:
    """Read a moment to come, in UTC: ISO 8601 with a zone, or a duration from ``now``."""
    text = text.strip()
    said = text[3:] if text[:3].lower() == "in " else text
    span = _span(said)
    if span is not None:
        moment = now + min(span, FURTHEST * 2)
    else:
        try:
            moment = dt.datetime.fromisoformat(text)
        except ValueError as error:
            raise ToolError(f"{_quoted(text)} is no time. {_FORMS}") from error
        if moment.tzinfo is None:
            raise ToolError(f"{_quoted(text)} names no zone, so it could be any of 24 hours. {_FORMS}")
    try:
        moment = moment.astimezone(dt.UTC)
    except OverflowError as error:
        raise ToolError(f"{_quoted(text)} is no time that there will be. {_FORMS}") from error
    if moment <= now:
        raise ToolError(f"{_quoted(text)} is past: it is {written(now)} now.")
    if moment > now + FURTHEST:
        raise ToolError(f"{_quoted(text)} is more than five years ahead.")
    return moment


def interval(text: str) -> dt.timedelta:
    """Read how long it is from one time to the next: ``10 minutes``, ``1 day``, also after ``every``."""
    said = text.strip()
    said = said[6:] if said[:6].lower() == "every " else said
    span = _span(said)
    if span is None:
        span = _span("1 " + said)
    if span is None:
        raise ToolError(
            f"{_quoted(text)} is no interval. Write one such as '30 minutes', '1 day' or '2 weeks'."
        )
    if not SHORTEST_INTERVAL <= span <= LONGEST_INTERVAL:
        raise ToolError(f"{_quoted(text)} is no interval that can be kept: from one minute to 366 days.")
    return span


def latest(first: dt.datetime, every: dt.timedelta, now: dt.datetime) -> tuple[dt.datetime, int]:
    """Give the last of the times ``first``, ``first + every``, … that is not after now, and how many come before it."""
    missed = max(0, (now - first) // every)
    return first + missed * every, missed


def written(moment: dt.datetime) -> str:
    """Write a moment in UTC, to the second."""
    return moment.astimezone(dt.UTC).isoformat(timespec="seconds")


def _span(text: str) -> dt.timedelta | None:
    text = text.strip()
    if not _DURATION.fullmatch(text):
        return None
    seconds = 0
    for number, unit in _PIECE.findall(text):
        seconds += (int(number) if number.isdigit() else 1) * _SECONDS[unit.lower()]
    # Long enough for every bound above, and short enough for the arithmetic of dates.
    return dt.timedelta(seconds=min(seconds, 10**9))


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:60] + "…")
