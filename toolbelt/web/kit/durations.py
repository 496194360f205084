"""The durations that one button sets, and the beginning of a day."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta

from django.utils import timezone

# By their words in forms, with their words on buttons.
SPANS = {"1h": "1 hour", "2h": "2 hours", "tomorrow": "until tomorrow"}


def midnight(day: date) -> datetime:
    """Return the moment at which a day begins."""
    return timezone.make_aware(datetime.combine(day, time.min))


def end(span: str) -> datetime:
    """Return the moment at which a span ends that begins now; tomorrow begins at midnight, where the server is."""
    now = timezone.now()
    if span == "tomorrow":
        return midnight(timezone.localdate() + timedelta(days=1))
    # To the next full minute.
    whole = now.replace(second=0, microsecond=0)
    return whole + timedelta(hours=int(span.removesuffix("h")), minutes=0 if whole == now else 1)
