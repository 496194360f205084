"""The common parts of all writes by operators: who writes and why, the transaction, the audit entry, and the result."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal, TypedDict, Unpack

from django.db import transaction

from toolbelt.core import effects, errors, facts
from toolbelt.store import audit, audit_writing, clock, commits, revisions, snapshots

Via = Literal["screen", "admin", "api", "command", "import", "mcp", "system"]

# Writes within the block are made at its time: for a generated history.
at = clock.stopped


class _Any:
    """The type of :data:`ANY`."""

    def __repr__(self) -> str:
        return "ANY"


ANY: Final = _Any()
"""The value of ``was`` if the writer does not state what they saw: nothing is compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who is behind a change, by name and kind, and the interface that was used.

    Persons and tokens have the name of a user, an agent has ``agent:`` before its key, and a server or a program has
    the name of its plugin.
    """

    name: str
    via: Via
    kind: facts.ActorKind


class Fields(TypedDict, total=False):
    """The fields of a write except its actor."""

    reason: str
    confirm: bool
    batch: uuid.UUID | None
    undoes: int | None
    action: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A write: its author, and what every write has in common.

    ``reason`` is the writer's, for the audit log. ``confirm``: they confirm a far-reaching change. Writes that share a
    ``batch`` are one step. ``undoes`` is the audit entry that this write undoes. ``action`` is its name in the audit
    log, if it is more than the change of an entry. ``asked_by`` is who asked for an observation; empty if its source or
    Toolbelt itself brought it up.
    """

    actor: Actor
    reason: str = ""
    confirm: bool = False
    batch: uuid.UUID | None = None
    undoes: int | None = None
    action: str = ""
    asked_by: str = ""

    @property
    def is_observation(self) -> bool:
        """Return whether it records a fact, instead of a decision (see :mod:`toolbelt.core.facts`)."""
        return self.actor.kind in facts.OBSERVERS

    def replace(self, **changes: Unpack[Fields]) -> Write:
        """Return a copy with these fields changed."""
        return dataclasses.replace(self, **changes)

    def in_batch(self) -> Write:
        """Return the write as a part of its batch, or of a new one."""
        return self if self.batch is not None else self.replace(batch=new_batch())

    def observed_by(self, name: str, kind: facts.ActorKind) -> Write:
        """Return the write of what this server or program shows; the actor of this write asked for it."""
        asked_by = self.asked_by if self.is_observation else self.actor.name
        actor = Actor(name=name, via=self.actor.via, kind=kind)
        return dataclasses.replace(self, actor=actor, asked_by=asked_by)


_KINDS: Mapping[Via, facts.ActorKind] = {"api": "token", "system": "clock"}


def by(name: str, via: Via, reason: str = "", *, kind: facts.ActorKind | None = None) -> Write:
    """Return a write by the operator with this name, through this interface: by a token through the API, and by
    Toolbelt itself through no interface, unless ``kind`` is another one.
    """
    return Write(actor=Actor(name=name, via=via, kind=kind or _KINDS.get(via, "person")), reason=reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The result of a write. ``entry`` is the audit entry's id, None if nothing had to change.

    ``before`` and ``after`` are what differs. ``left_out`` are the audit entries of a batch that an undo left as they
    are, because they record what was observed. ``result`` is the result as it is stored: an entry, or all switches and
    overrides of an agent; None if the write does not provide it.
    """

    entry: int | None
    before: Any
    after: Any
    effect: effects.Effect | None = None
    result: Mapping[str, Any] | None = None
    left_out: tuple[int, ...] = ()

    @property
    def is_nothing(self) -> bool:
        """Return whether everything was already as requested."""
        return self.entry is None


@contextmanager
def begin() -> Iterator[None]:
    """Run the block in the one transaction of a change. Writers of configuration run one after the other, so that what
    a writer compares cannot change meanwhile, and revision numbers have the order of the commits.
    """
    with transaction.atomic(), revisions.writing():
        transaction.on_commit(commits.committed)
        yield


@contextmanager
def dry_run() -> Iterator[None]:
    """Run the block as one transaction that is rolled back: nothing that it writes stays."""
    with transaction.atomic(), snapshots.trying():
        with revisions.writing():
            yield
        transaction.set_rollback(True)


def record(
    write: Write,
    subject_kind: str,
    subject_key: str,
    *,
    action: str,
    key: str = "",
    before: Any,
    after: Any,
) -> int:
    """Add an entry to the audit log, in the transaction of the change; return its id."""
    return audit_writing.record(
        actor=write.actor.name,
        via=write.actor.via,
        action=action,
        subject_kind=subject_kind,
        subject_key=subject_key,
        key=key,
        before=before,
        after=after,
        reason=write.reason,
        batch=write.batch,
        undoes=write.undoes,
        actor_kind=write.actor.kind,
        asked_by=write.asked_by,
    )


def author(
    write: Write, subject_kind: str = "", subject_key: str = "", key: str = "", fields: Collection[str] = ()
) -> errors.Author:
    """Return who changed something last, for a message to a writer who saw an older value: the writer themselves, in
    another tab or program; another operator; or the source of a tool.

    That is a subject, or a toolkit or tool (``key``) or ``fields`` of it, or the configuration as a whole.
    """
    last = audit.last_author(subject_kind, subject_key, key, fields)
    if last is None:
        return ""
    name, kind = last
    if kind in facts.OBSERVERS:
        return "source" if subject_kind and kind != "clock" else ""
    is_agent = "agent" in (kind, write.actor.kind)
    is_same = name == write.actor.name and (not is_agent or kind == write.actor.kind)
    return "you" if is_same else "operator"


def new_batch() -> uuid.UUID:
    """Return the id of a new batch."""
    return uuid.uuid4()
