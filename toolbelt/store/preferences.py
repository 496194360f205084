"""The choices of people for their own use of the dashboard."""

from __future__ import annotations

from toolbelt import models


def of(user: int) -> dict[str, str]:
    """Return the preferences of a person (by primary key), by name; those that were never set are empty."""
    row = models.Preferences.objects.filter(pk=user).first()
    return {"time_zone": row.time_zone, "density": row.density} if row else {}


def choose(user: int, name: str, value: str) -> None:
    """Set one preference of a person; empty: nothing."""
    models.Preferences.objects.update_or_create(pk=user, defaults={name: value})
