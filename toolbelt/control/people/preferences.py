"""What people choose for their own use of the dashboard. It changes nothing for anyone else, so it is not audited."""

from __future__ import annotations

import functools
import zoneinfo

from toolbelt.core import errors
from toolbelt.store import preferences

time_zone = preferences.time_zone


@functools.cache
def time_zones() -> frozenset[str]:
    """Return the names of the time zones that can be chosen."""
    return frozenset(zoneinfo.available_timezones())


def set_time_zone(user: int, zone: str) -> None:
    """Let a person see times in this zone; empty: in that of their browser. Raise errors.Refused for an unknown one."""
    if zone and zone not in time_zones():
        raise errors.Refused(f"{zone[:64]!r} is not a time zone. Choose one from the list.")
    preferences.set_time_zone(user, zone)
