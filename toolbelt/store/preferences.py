"""The choices of people for their own use of the dashboard."""

from __future__ import annotations

from toolbelt import models


def time_zone(user: int) -> str:
    """Return the zone that a person chose (by primary key); empty if they chose none."""
    return models.Preferences.objects.filter(pk=user).values_list("time_zone", flat=True).first() or ""


def set_time_zone(user: int, zone: str) -> None:
    """Let a person see times in this zone; empty: in that of their browser."""
    models.Preferences.objects.update_or_create(pk=user, defaults={"time_zone": zone})
