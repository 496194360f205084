"""The row of the belt that was applied last."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass

from toolbelt import models


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedBelt:
    """The belt: the name and the digest of its file, when and by whom it was applied, the id of the newest audit entry
    then, and the digest of what was decided of each of its entries, by kind and name. ``prunes``: agents that it did
    not have were archived.
    """

    name: str
    digest: str
    at: dt.datetime
    actor: str
    entry: int
    entries: Mapping[str, Mapping[str, str]]
    prunes: bool


_FIELDS = tuple(AppliedBelt.__dataclass_fields__)


def find() -> AppliedBelt | None:
    """Return the belt that was applied last; None if none was."""
    row = models.AppliedBelt.objects.values(*_FIELDS).first()
    return AppliedBelt(**row) if row is not None else None


def store(belt: AppliedBelt) -> None:
    """Store it as the one that was applied last, in the transaction of a writer of configuration."""
    models.AppliedBelt.objects.all().delete()
    models.AppliedBelt.objects.create(**{name: getattr(belt, name) for name in _FIELDS})
