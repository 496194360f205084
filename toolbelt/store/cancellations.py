"""Which calls are to end that another process runs? What one process writes down, all others read."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping

from toolbelt import models
from toolbelt.store import clock

# Nothing is called for longer than this; what is older was for a call that had ended already.
KEPT = dt.timedelta(hours=1)


def ask(key: str) -> None:
    """Ask for the end of a call, wherever it runs. What nobody can want any more is forgotten with it."""
    now = clock.now()
    models.Cancellation.objects.filter(at__lt=now - KEPT).delete()
    models.Cancellation.objects.update_or_create(key=key, defaults={"at": now})


def asked(keys: Collection[str]) -> Mapping[str, dt.datetime]:
    """Say which of these calls are to end, and since when that is wanted. One query."""
    return dict(models.Cancellation.objects.filter(key__in=keys).values_list("key", "at"))
