"""Whether the errors of an hour are a spike, compared with the same hour of the weeks before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

# Fewer errors in an hour are not a spike, whatever was usual.
MIN_ERRORS = 20
# The least share of the calls that fail, in percent: a busy server always has some errors.
MIN_PERCENT = 5
# How many times the usual errors a spike has.
MIN_FACTOR = 3
# Above this share, in percent, the hour failed, whatever its share of errors usually is.
FAILED_PERCENT = 50
# How many times the usual share of errors a spike has otherwise: with more calls alone come more errors.
MIN_SHARE_FACTOR = 2


class Hour(NamedTuple):
    """The calls of one hour, and those of them that were errors."""

    calls: int
    errors: int


def is_spike(hour: Hour, before: Sequence[Hour]) -> bool:
    """Return whether an hour has far more errors than the same hour of the weeks ``before``.

    Weeks without calls at this hour say nothing; without any week, no errors are usual.
    """
    calls, errors = hour
    if errors < MIN_ERRORS or 100 * errors < MIN_PERCENT * calls:
        return False
    weeks = [week for week in before if week.calls]
    if errors * len(weeks) < MIN_FACTOR * sum(week.errors for week in weeks):
        return False
    if 100 * errors >= FAILED_PERCENT * calls:
        return True
    usual_calls, usual_errors = sum(week.calls for week in weeks), sum(week.errors for week in weeks)
    return errors * usual_calls >= MIN_SHARE_FACTOR * usual_errors * calls


def usual(before: Sequence[Hour]) -> int:
    """Return how many errors are usual at this hour: the mean of the weeks that had calls."""
    weeks = [week for week in before if week.calls]
    return round(sum(week.errors for week in weeks) / len(weeks)) if weeks else 0
