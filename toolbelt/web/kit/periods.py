"""Periods: those of a log or a chart (a preset, or days that the reader chooses), and for how long a flip applies."""

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
# What narrows a list to a period, by the names in the address.
NAMES = ("period", "since", "until")
# What one button sets something for, by its word in forms, with its words.
SPANS = {"1h": "1 hour", "2h": "2 hours", "tomorrow": "until tomorrow"}


class Period(forms.Form):
    """A preset, or the first and the last day."""

    period = forms.ChoiceField(required=False, choices=list(_LABELS.items()))
    since = fields.Day(required=False)
    until = fields.Day(required=False)


def days(filters: Mapping[str, Any]) -> tuple[dt.date | None, dt.date | None]:
    """Return the first and the last day, None without one. A preset has precedence over days."""
    if filters["period"] in _PRESETS:
        today = timezone.localdate()
        first, last = (today - dt.timedelta(days=back) for back in _PRESETS[filters["period"]])
        return first, last
    return filters["since"] or None, filters["until"] or None


def time_range(first: dt.date | None, last: dt.date | None) -> dict[str, Any]:
    """Return when the first day begins, and when the last one ends."""
    return {
        "since": midnight(first) if first else None,
        "until": midnight(last + dt.timedelta(days=1)) if last else None,
    }


def address_parameters(filters: Mapping[str, Any]) -> dict[str, str]:
    """Return what an address needs to name the same period."""
    names = ("period",) if filters["period"] in _PRESETS else NAMES
    return {name: str(filters[name]) for name in names if filters[name]}


def present(filters: Mapping[str, Any], *, anything: str = "", first: dt.date | None = None) -> pieces.View:
    """Return what the reader chooses from; ``anything`` labels no choice. If none was chosen, the period is the one
    from ``first`` until today.
    """
    since, until = filters["since"], filters["until"]
    chosen = filters["period"] or (CUSTOM if since or until else "")
    if not chosen and first is not None:
        back = (timezone.localdate() - first).days
        chosen = next((name for name, period in _PRESETS.items() if period == (back, 0)), CUSTOM)
    return pieces.View(choices=pieces.choices(_LABELS, chosen, anything), since=since or first, until=until)


def midnight(day: dt.date) -> dt.datetime:
    """Return the moment at which a day begins."""
    return timezone.make_aware(dt.datetime.combine(day, dt.time.min))


def end(span: str) -> dt.datetime:
    """Return the moment at which a span ends that begins now; tomorrow begins at midnight in the reader's time zone."""
    now = timezone.now()
    if span == "tomorrow":
        return midnight(timezone.localdate() + dt.timedelta(days=1))
    # To the next full minute.
    whole = now.replace(second=0, microsecond=0)
    return whole + dt.timedelta(hours=int(span.removesuffix("h")), minutes=0 if whole == now else 1)
