"""Writing the audit log, in the transaction of each change."""

from __future__ import annotations

import contextlib
import contextvars
import datetime as dt
import uuid
from collections.abc import Iterable, Iterator
from typing import Any

from toolbelt import models
from toolbelt.core import facts
from toolbelt.store import clock, revisions

# How many entries one statement adds.
_BATCH_SIZE = 200
_moment: contextvars.ContextVar[dt.datetime | None] = contextvars.ContextVar("moment", default=None)


def record(
    *,
    actor: str,
    via: str,
    action: str,
    subject_kind: str,
    subject_key: str,
    key: str = "",
    before: Any,
    after: Any,
    reason: str = "",
    batch: uuid.UUID | None = None,
    undoes: int | None = None,
    actor_kind: facts.ActorKind = "person",
    asked_by: str = "",
) -> int:
    """Add an entry to the log, in the caller's transaction; return its id."""
    revision, unlogged = revisions.note_entry()
    return models.AuditEntry.objects.create(
        at=_moment.get() or clock.now(),
        actor=actor,
        via=via,
        action=action,
        subject_kind=subject_kind,
        subject_key=subject_key,
        key=key,
        before=before,
        after=after,
        # PostgreSQL does not store NUL in text.
        reason=reason.replace("\x00", ""),
        batch=batch,
        undoes_id=undoes,
        actor_kind=actor_kind,
        asked_by=asked_by,
        revision=revision,
        unlogged=unlogged,
    ).pk


def record_all(
    *,
    actor: str,
    via: str,
    subject_kind: str,
    changes: Iterable[tuple[str, str, Any, Any]],
    reason: str = "",
    batch: uuid.UUID | None,
    actor_kind: facts.ActorKind = "person",
    asked_by: str = "",
) -> None:
    """Add an entry for each change (action, subject, before, after) of one step, in a few statements."""
    changes = list(changes)
    if not changes:
        return
    revision, unlogged = revisions.note_entry()
    models.AuditEntry.objects.bulk_create(
        [
            models.AuditEntry(
                at=_moment.get() or clock.now(),
                actor=actor,
                via=via,
                action=action,
                subject_kind=subject_kind,
                subject_key=subject,
                before=before,
                after=after,
                reason=reason.replace("\x00", ""),
                batch=batch,
                actor_kind=actor_kind,
                asked_by=asked_by,
                revision=revision,
                unlogged=None if place else unlogged,
            )
            for place, (action, subject, before, after) in enumerate(changes)
        ],
        batch_size=_BATCH_SIZE,
    )


@contextlib.contextmanager
def dated(moment: dt.datetime) -> Iterator[None]:
    """Set the time of entries that are recorded within the block: for expiries, which are recorded later."""
    before = _moment.set(moment)
    try:
        yield
    finally:
        _moment.reset(before)
