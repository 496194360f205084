"""Which calls were made? Recorded one by one, and forgotten by age."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.db import models as orm

from toolbelt import models

# How many records one statement forgets: others write between two of them.
AT_ONCE = 5000

LONGEST = {
    field.name: field.max_length
    for field in models.CallRecord._meta.concrete_fields
    if isinstance(field, orm.CharField)
}


def record(
    *,
    at: dt.datetime,
    agent: str,
    session: str,
    request_id: str,
    tool: str,
    plugin: str,
    outcome: str,
    error: str,
    duration_ms: int,
    arguments_bytes: int,
    result_bytes: int,
    arguments: Any = None,
) -> None:
    """Add a call; texts that are longer than their column are cut."""
    texts = {
        "agent": agent,
        "session": session,
        "request_id": request_id,
        "tool": tool,
        "plugin": plugin,
        "error": error,
    }
    models.CallRecord.objects.create(
        **{name: _fit(name, text) for name, text in texts.items()},
        at=at,
        outcome=outcome,
        duration_ms=duration_ms,
        arguments_bytes=arguments_bytes,
        result_bytes=result_bytes,
        arguments=arguments,
    )


def prune(before: dt.datetime) -> int:
    """Forget the calls that came in before this; say how many."""
    forgotten = 0
    while True:
        oldest = list(
            models.CallRecord.objects.filter(at__lt=before)
            .order_by("at")
            .values_list("pk", flat=True)[:AT_ONCE]
        )
        if not oldest:
            return forgotten
        forgotten += models.CallRecord.objects.filter(pk__in=oldest).delete()[0]


def _fit(name: str, text: str) -> str:
    # PostgreSQL keeps no NUL, and UTF-8 no halves of characters; a name that a model made up may hold both.
    sound = text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()
    return sound[: LONGEST[name]]
