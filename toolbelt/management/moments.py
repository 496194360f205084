"""How is a moment said on a command line? As one, or as how long from now."""

from __future__ import annotations

import argparse
import datetime as dt
import re

from django.utils import timezone

from toolbelt.core import grants

_UNITS = {"m": "minutes", "h": "hours", "d": "days"}
_SPAN = re.compile(r"(\d{1,6})([mhd])")


def span(text: str) -> dt.datetime:
    """Read how long from now: ``90m``, ``2h``, ``3d``."""
    found = _SPAN.fullmatch(text)
    if found is None or not int(found[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is no span of time: say it like 90m, 2h or 3d.")
    try:
        return timezone.now() + dt.timedelta(**{_UNITS[found[2]]: int(found[1])})
    except OverflowError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is longer than there are calendars.") from error


def moment(text: str) -> dt.datetime:
    """Read a moment with its zone: ``2026-11-22T14:05:00Z``."""
    found = grants.moment(text)
    if found is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no moment with its zone: say it like 2026-11-22T14:05:00Z."
        )
    return found
