"""How does one change come about? The transaction, the lock and the answer that all of control shares."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from django.db import transaction

from toolbelt.core import effects
from toolbelt.store import commits, revisions


class _Any:
    """The type of :data:`ANY`."""

    def __repr__(self) -> str:
        return "ANY"


ANY: Final = _Any()
"""Given as ``was``: the writer does not say what they saw, so nothing is compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a write did. ``entry`` is the audit entry's id, None where nothing had to be changed.

    ``before`` and ``after`` are what differs. ``whole`` is what was written into, as it is stored then: an entry, or
    all that is set for an agent; None where a write does not tell.
    """

    entry: int | None
    before: Any
    after: Any
    effect: effects.Effect | None = None
    whole: Mapping[str, Any] | None = None

    @property
    def is_nothing(self) -> bool:
        """Say whether things already were as wanted."""
        return self.entry is None


@contextmanager
def begin() -> Iterator[None]:
    """Open the one transaction of a change. Writers of configuration go one after the other, so that what a
    writer compares cannot change under it and numbers are taken in the order in which they commit.
    """
    with transaction.atomic():
        revisions.lock()
        transaction.on_commit(commits.committed)
        yield


def new_batch() -> uuid.UUID:
    """Give the id that the entries of one bulk change share."""
    return uuid.uuid4()
