"""Parsing and formatting of times and intervals. The current time is always an argument."""

from __future__ import annotations

import datetime as dt
import re

from toolbelt import ToolError

MAX_AHEAD = dt.timedelta(days=5 * 366)
MIN_INTERVAL = dt.timedelta(minutes=1)
MAX_INTERVAL = dt.timedelta(days=366)

_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_PART = (
    r"(?:\d{1,7}\s{0,4}|an?\s{1,4})(?:s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|wks?|weeks?)"
)
_DURATION = re.compile(rf"{_PART}(?:\s{{0,4}}(?:,|and)?\s{{0,4}}{_PART}){{0,9}}", re.IGNORECASE | re.ASCII)
_PIECE = re.compile(r"(\d+|an?(?=\s))\s*([smhdw])[a-z]*", re.IGNORECASE | re.ASCII)
_FORMS = "Write a time with its time zone, such as 2030-05-01T09:00:00+02:00, or a duration, such as 'in 10 minutes'."


def parse_time(text: str, now: dt.datetime) -> dt.datetime:
    """Return a future time in UTC, parsed from ISO 8601 with a zone or from a duration. Raise ToolError if invalid."""
    text = text.strip()
    duration = text[3:] if text[:3].lower() == "in " else text
    span = _span(duration)
    if span is not None:
        moment = now + min(span, MAX_AHEAD * 2)
    else:
        try:
            moment = dt.datetime.fromisoformat(text)
        except ValueError as error:
            raise ToolError(f"{_quoted(text)} is not a time. {_FORMS}") from error
        if moment.tzinfo is None:
            raise ToolError(f"{_quoted(text)} has no time zone. {_FORMS}")
    try:
        moment = moment.astimezone(dt.UTC)
    except OverflowError as error:
        raise ToolError(f"{_quoted(text)} is outside the range of dates. {_FORMS}") from error
    if moment <= now:
        raise ToolError(f"{_quoted(text)} is in the past. It is {format_time(now)} now.")
    if moment > now + MAX_AHEAD:
        raise ToolError(f"{_quoted(text)} is more than five years ahead. Choose an earlier time.")
    return moment


def interval(text: str) -> dt.timedelta:
    """Return an interval, parsed from text such as ``10 minutes`` or ``every 1 day``. Raise ToolError if invalid."""
    duration = text.strip()
    duration = duration[6:] if duration[:6].lower() == "every " else duration
    span = _span(duration)
    if span is None:
        span = _span("1 " + duration)
    if span is None:
        raise ToolError(
            f"{_quoted(text)} is not an interval. Write, for example, '30 minutes', '1 day' or '2 weeks'."
        )
    if not MIN_INTERVAL <= span <= MAX_INTERVAL:
        raise ToolError(f"{_quoted(text)} is out of range. Choose an interval from one minute to 366 days.")
    return span


def latest(first: dt.datetime, every: dt.timedelta, now: dt.datetime) -> tuple[dt.datetime, int]:
    """Return the latest of the times ``first``, ``first + every``, … that is not after now, and how many precede it."""
    missed = max(0, (now - first) // every)
    return first + missed * every, missed


def format_time(moment: dt.datetime) -> str:
    """Return the time as text, in UTC, to the second."""
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
