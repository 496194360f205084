"""Cancellations of calls that run in another process: one process writes them, all others read them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping

from toolbelt import models
from toolbelt.store import clock

# No call takes longer than this; an older cancellation was for a call that has ended.
MAX_AGE = dt.timedelta(hours=1)


def request(key: str) -> None:
    """Request the cancellation of a call, wherever it runs, and delete outdated requests."""
    now = clock.now()
    models.Cancellation.objects.filter(at__lt=now - MAX_AGE).delete()
    models.Cancellation.objects.update_or_create(key=key, defaults={"at": now})


def requested(keys: Collection[str]) -> Mapping[str, dt.datetime]:
    """Return which of these calls are to be cancelled, and since when. Uses one query."""
    return dict(models.Cancellation.objects.filter(key__in=keys).values_list("key", "at"))
