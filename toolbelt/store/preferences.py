"""The choices of people for their own use of the dashboard."""

from __future__ import annotations

from typing import NamedTuple

from django.contrib import auth

from toolbelt import models


class Chosen(NamedTuple):
    """What a person chose, with their primary key, name and mail address."""

    user: int
    name: str
    email: str
    value: str


def of(user: int) -> dict[str, str]:
    """Return the preferences of a person (by primary key), by name; those that were never set are empty."""
    row = models.Preferences.objects.filter(pk=user).first()
    return {name: getattr(row, name) for name in ("time_zone", "density", "alerts")} if row else {}


def chosen(name: str) -> list[Chosen]:
    """Return what the active users who set this preference chose, in order."""
    rows = models.Preferences.objects.exclude(**{name: ""}).filter(user__is_active=True).order_by("pk")
    columns = ("user", f"user__{auth.get_user_model().USERNAME_FIELD}", "user__email", name)
    return [Chosen(*row) for row in rows.values_list(*columns)]


def choose(user: int, name: str, value: str) -> None:
    """Set one preference of a person; empty: nothing."""
    models.Preferences.objects.update_or_create(pk=user, defaults={name: value})
