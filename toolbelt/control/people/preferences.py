"""The preferences of people for the dashboard. They change nothing for anyone else, so they are not audited."""

from __future__ import annotations

import functools
import zoneinfo
from typing import Literal

from toolbelt.core import errors
from toolbelt.store import preferences

# The zone in which times are shown, and how dense rows are. Empty: that of the browser, and comfortable rows.
Name = Literal["time_zone", "density"]

of = preferences.of


@functools.cache
def choices(name: Name) -> frozenset[str]:
    """Return the valid values, besides an empty one."""
    return frozenset(zoneinfo.available_timezones()) if name == "time_zone" else frozenset({"compact"})


def choose(user: int, name: Name, value: str) -> None:
    """Let a person prefer this; empty: nothing. Raise errors.Refused for what cannot be chosen."""
    if value and value not in choices(name):
        raise errors.Refused(
            f"{value[:64]!r} is not a time zone. Choose one from the list."
            if name == "time_zone"
            else f"Rows cannot be {value[:64]!r}: choose comfortable or compact."
        )
    preferences.choose(user, name, value)
