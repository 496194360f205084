"""Parsing of times on the command line, absolute or relative to now."""

from __future__ import annotations

import argparse
import datetime as dt
import re

from django.utils import timezone

from toolbelt.core import grants

_UNITS = {"m": "minutes", "h": "hours", "d": "days"}
_DURATION = re.compile(r"(\d{1,6})([mhd])")


def add_end(parser: argparse.ArgumentParser) -> None:
    """Add the two ways to say when a change ends, as ``ends``."""
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument(
        "--for",
        dest="ends",
        metavar="SPAN",
        type=from_now,
        help="how long it applies, such as 90m, 2h or 3d",
    )
    ways.add_argument(
        "--until",
        dest="ends",
        metavar="TIME",
        type=timestamp,
        help="when it ends, with a time zone, such as 2026-11-22T14:05:00Z",
    )


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
