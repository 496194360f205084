"""The choices of people for their own use of the dashboard."""

from __future__ import annotations

from typing import Any

from toolbelt import models


def of(user: int) -> dict[str, str]:
    """Return the preferences of a person (by primary key), by name; those that were never set are empty."""
    row = models.Preferences.objects.filter(pk=user).first()
    return {name: getattr(row, name) for name in ("time_zone", "density", "alerts")} if row else {}


def people_with(name: str) -> list[tuple[Any, str]]:
    """Return the active users who set this preference, in order, with their choice."""
    rows = models.Preferences.objects.exclude(**{name: ""}).filter(user__is_active=True)
    return [(row.user, getattr(row, name)) for row in rows.select_related("user").order_by("pk")]


def choose(user: int, name: str, value: str) -> None:
    """Set one preference of a person; empty: nothing."""
    models.Preferences.objects.update_or_create(pk=user, defaults={name: value})
