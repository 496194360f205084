"""Parsing of times on the command line, absolute or relative to now."""

from __future__ import annotations

import argparse
import datetime as dt
import re

from django.utils import timezone

from toolbelt.core import grants

_UNITS = {"m": "minutes", "h": "hours", "d": "days"}
_DURATION = re.compile(r"(\d{1,6})([mhd])")


def from_now(text: str) -> dt.datetime:
    """Return the time that is this duration from now: ``90m``, ``2h``, ``3d``."""
    match = _DURATION.fullmatch(text)
    if match is None or not int(match[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration. Write, for example, 90m, 2h or 3d.")
    try:
        return timezone.now() + dt.timedelta(**{_UNITS[match[2]]: int(match[1])})
    except OverflowError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is too long. Choose a shorter duration.") from error


def timestamp(text: str) -> dt.datetime:
    """Return the time in the text, which must have a time zone: ``2026-11-22T14:05:00Z``."""
    time = grants.parse_time(text)
    if time is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a time with its time zone. Write, for example, 2026-11-22T14:05:00Z."
        )
    return time
