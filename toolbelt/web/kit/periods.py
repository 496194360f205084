"""Periods: of a log or a chart (a preset, or days that the reader chooses), and for how long a flip applies."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils import timezone

from toolbelt.web.kit import fields, pieces

CUSTOM = "custom"
# How many days ago each preset begins and ends.
_PRESETS = {"today": (0, 0), "yesterday": (1, 1), "7d": (6, 0), "30d": (29, 0)}
_LABELS = {"today": "Today", "yesterday": "Yesterday", "7d": "7 days", "30d": "30 days", CUSTOM: "Custom"}
# The query parameters of a period.
NAMES = ("period", "since", "until")
# The spans of time that buttons offer, by their values in forms, with their labels.
SPANS = {"1h": "1 hour", "2h": "2 hours", "tomorrow": "until tomorrow"}


class Period(forms.Form):
    """A preset, or the first and the last day."""

    period = forms.ChoiceField(required=False, choices=list(_LABELS.items()))
    since = fields.Day(required=False)
    until = fields.Day(required=False)


def days(filters: Mapping[str, Any]) -> tuple[dt.date | None, dt.date | None]:
    """Return the first and the last day, None without one. A preset takes precedence over days."""
    if filters["period"] in _PRESETS:
        today = timezone.localdate()
        first, last = (today - dt.timedelta(days=days_ago) for days_ago in _PRESETS[filters["period"]])
        return first, last
    return filters["since"] or None, filters["until"] or None


def time_range(first: dt.date | None, last: dt.date | None) -> dict[str, Any]:
    """Return the start of the first day, and the end of the last one."""
    return {
        "since": midnight(first) if first else None,
        "until": midnight(last + dt.timedelta(days=1)) if last else None,
    }


def address_parameters(filters: Mapping[str, Any]) -> dict[str, str]:
    """Return the query parameters of the period."""
    names = ("period",) if filters["period"] in _PRESETS else NAMES
    return {name: str(filters[name]) for name in names if filters[name]}


class Choices(pieces.View):
    """The choices of a period; ``any_label`` is the label of no choice. Without a choice, the period is from
    ``first`` until today.
    """

    def __init__(
        self, filters: Mapping[str, Any], *, any_label: str = "", first: dt.date | None = None
    ) -> None:
        since, until = filters["since"], filters["until"]
        chosen = filters["period"] or (CUSTOM if since or until else "")
        if not chosen and first is not None:
            days_ago = (timezone.localdate() - first).days
            chosen = next((name for name, period in _PRESETS.items() if period == (days_ago, 0)), CUSTOM)
        self.choices = pieces.choices(_LABELS, chosen, any_label)
        self.since = since or first
        self.until = until


def midnight(day: dt.date) -> dt.datetime:
    """Return the time at which a day begins."""
    return timezone.make_aware(dt.datetime.combine(day, dt.time.min))


def end(span: str) -> dt.datetime:
    """Return when a span that begins now ends; ``tomorrow`` begins at midnight in the reader's time zone."""
    now = timezone.now()
    if span == "tomorrow":
        return midnight(timezone.localdate() + dt.timedelta(days=1))
    # Round up to the next full minute.
    minute = now.replace(second=0, microsecond=0)
    return minute + dt.timedelta(hours=int(span.removesuffix("h")), minutes=0 if minute == now else 1)
