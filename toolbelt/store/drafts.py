"""Drafts, as values and rows."""

from __future__ import annotations

import datetime as dt
import hashlib
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from toolbelt import models
from toolbelt.core import belts, schema
from toolbelt.store import audit, clock

_FIELDS = ("action", "subject_kind", "subject_key", "key", "before", "after")


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A change that is kept: ``changes`` are the audit entries that it would have, without an id (0).

    ``shown`` are the versions of the tools that it approves or rejects, ``revision`` is the one that it was made at.
    ``applied`` is None until it is. ``is_intact``: the changes are those that were saved.
    """

    key: uuid.UUID
    title: str
    author: str
    reason: str
    at: dt.datetime
    ends: dt.datetime
    revision: int
    changes: tuple[audit.Entry, ...]
    shown: Mapping[str, str]
    applied: dt.datetime | None
    applied_by: str
    is_intact: bool

    @property
    def is_open(self) -> bool:
        """Return whether it can still be applied."""
        return self.applied is None and self.ends > clock.now()


def save(
    *,
    title: str,
    author: str,
    reason: str,
    ends: dt.datetime,
    revision: int,
    changes: Iterable[audit.Entry],
    shown: Mapping[str, str],
) -> Draft:
    """Store a draft."""
    documents = [{name: getattr(change, name) for name in _FIELDS} for change in changes]
    return _value(
        models.Draft.objects.create(
            title=title,
            author=author,
            reason=reason.replace("\x00", ""),
            at=clock.now(),
            ends=ends,
            revision=revision,
            changes=documents,
            shown=dict(shown),
            digest=_digest(documents),
        )
    )


def find(key: uuid.UUID, *, lock: bool = False) -> Draft | None:
    """Return a draft, locked until the transaction ends if ``lock``; or None."""
    rows = models.Draft.objects.filter(pk=key)
    row = (rows.select_for_update() if lock else rows).first()
    return None if row is None else _value(row)


def listed(author: str = "", *, applied: bool | None = None, part: slice = slice(None)) -> list[Draft]:
    """Return the drafts, newest first, or a ``part`` of them: of one author, if one is named; applied ones, or those
    that are not.
    """
    rows = _of(author).order_by("-at", "key")
    if applied is not None:
        rows = rows.filter(applied__isnull=not applied)
    return [_value(row) for row in rows[part]]


def count(author: str = "") -> int:
    """Return how many drafts there are: of one author, if one is named."""
    return _of(author).count()


def count_open(author: str = "") -> int:
    """Return how many drafts can be applied: of one author, if one is named."""
    return _of(author).filter(applied=None, ends__gt=clock.now()).count()


def _of(author: str) -> QuerySet[models.Draft]:
    rows = models.Draft.objects.all()
    return rows.filter(author=author) if author else rows


def applied(key: uuid.UUID, by: str) -> None:
    """Store that a draft was applied."""
    models.Draft.objects.filter(pk=key).update(applied=clock.now(), applied_by=by)


def keep_until(key: uuid.UUID, ends: dt.datetime) -> None:
    """Store another end."""
    models.Draft.objects.filter(pk=key).update(ends=ends)


def remove(keys: Sequence[uuid.UUID]) -> None:
    """Delete drafts, with their trials."""
    models.Draft.objects.filter(pk__in=keys).delete()


def ended() -> list[Draft]:
    """Return the drafts whose time has come, applied or not."""
    return [_value(row) for row in models.Draft.objects.filter(ends__lte=clock.now())]


def _value(row: models.Draft) -> Draft:
    return Draft(
        key=row.key,
        title=row.title,
        author=row.author,
        reason=row.reason,
        at=row.at,
        ends=row.ends,
        revision=row.revision,
        changes=tuple(_change(row, document) for document in row.changes),
        shown=row.shown,
        applied=row.applied,
        applied_by=row.applied_by,
        is_intact=_digest(row.changes) == row.digest,
    )


def _change(row: models.Draft, document: Mapping[str, Any]) -> audit.Entry:
    return audit.Entry(
        id=0,
        at=row.at,
        actor=row.author,
        via="system",
        reason=row.reason,
        batch=None,
        undoes=None,
        undone=None,
        **{name: belts.withheld(document[name]) for name in _FIELDS},
    )


def _digest(documents: Sequence[Mapping[str, Any]]) -> str:
    return hashlib.sha256(schema.canonical(documents).encode()).hexdigest()
