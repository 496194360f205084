"""The preferences of people for the dashboard. They change nothing for anyone else, so they are not audited."""

from __future__ import annotations

import functools
import zoneinfo
from collections.abc import Mapping
from typing import Literal

from toolbelt.core import errors
from toolbelt.store import preferences

# The zone in which times are shown, how dense rows are, and when alerts are sent. Empty: that of the browser,
# comfortable rows, and never.
Name = Literal["time_zone", "density", "alerts"]
_CHOICES = {"density": frozenset({"compact"}), "alerts": frozenset({"now", "daily"})}
_WAYS_OUT: Mapping[Name, str] = {
    "time_zone": "is not a time zone. Choose one from the list",
    "density": "is no density of rows: choose comfortable or compact",
    "alerts": "is no time of alerts: choose immediately, daily or never",
}

of = preferences.of


@functools.cache
def choices(name: Name) -> frozenset[str]:
    """Return the valid values, besides an empty one."""
    return frozenset(zoneinfo.available_timezones()) if name == "time_zone" else _CHOICES[name]


def choose(user: int, name: Name, value: str) -> None:
    """Let a person prefer this; empty: nothing. Raise errors.Refused for what cannot be chosen."""
    if value and value not in choices(name):
        raise errors.Refused(f"{value[:64]!r} {_WAYS_OUT[name]}.")
    preferences.choose(user, name, value)
