"""Changes that are described as the audit log has them, to be proved: what is changed, and its value afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt.control import writing
from toolbelt.control.access import switches
from toolbelt.control.catalog import entries
from toolbelt.core import belts, errors
from toolbelt.store import snapshots


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change. With a ``key``, ``after`` is whether this switch or override of an agent is on (None: unset).

    Without a key, ``after`` has the fields of the entry that change (None resets one), or those of a new one; None
    removes the entry.
    """

    kind: str
    name: str
    key: str = ""
    after: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reversal:
    """What would undo a change, which requires the same permissions."""

    action: str
    subject_kind: str
    subject_key: str
    before: Any = None
    after: Any = None


def make(write: writing.Write, changes: Iterable[Change]) -> None:
    """Make the changes in their order, in the transaction of the caller; raise as each does."""
    for number, change in enumerate(changes):
        try:
            _make(write, change)
        except errors.Invalid as error:
            problems = [
                errors.Problem(path=f"changes[{number}].{problem.path}".rstrip("."), message=problem.message)
                for problem in error.problems
            ]
            raise errors.Invalid(problems) from error


def reversals(changes: Iterable[Change]) -> Iterator[Reversal]:
    """Yield what would undo the changes. Raise errors.NotFound for an unknown kind."""
    for change in changes:
        if change.kind not in belts.KINDS:
            raise errors.NotFound("kind", change.kind, [*belts.KINDS])
        act, before = "change", change.after
        if change.key:
            yield Reversal(action="switch.set", subject_kind="agent", subject_key=change.name)
            continue
        if change.after is None:
            act, before = "create", None
        elif not _exists(change):
            act = "remove"
        yield Reversal(
            action=f"{change.kind}.{act}",
            subject_kind=change.kind,
            subject_key=change.name,
            before=before,
        )


def _make(write: writing.Write, change: Change) -> None:
    if change.key:
        if change.kind != "agent":
            raise _invalid("key", "only an agent has switches and overrides: leave out the key.")
        if not (change.after is None or isinstance(change.after, bool)):
            raise _invalid("after", "a switch or an override is true, false, or null, which resets it.")
        is_toolkit = change.key in snapshots.catalog().toolkits
        flip = switches.flip if is_toolkit else switches.override
        flip(write, change.name, change.key, change.after)
    elif change.after is None:
        entries.remove(write, change.kind, change.name)
    elif not isinstance(change.after, Mapping):
        raise _invalid("after", "an entry is an object with its fields, or null, which removes it.")
    elif _exists(change):
        entries.change(write, change.kind, change.name, change.after)
    else:
        given = {name: value for name, value in change.after.items() if value is not None}
        entries.create(write, change.kind, {**given, entries.name_field(change.kind): change.name})


def _exists(change: Change) -> bool:
    try:
        entries.read(change.kind, change.name)
    except errors.NotFound:
        return False
    return True


def _invalid(path: str, message: str) -> errors.Invalid:
    return errors.Invalid([errors.Problem(path=path, message=message)])
