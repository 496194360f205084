"""In which order do toolkits, agents, loadouts, sub-apps and plugins stand? That of toolkits is the order of their
sections in the policy, so it is changed as everything is: compared, audited, undone.
"""

from __future__ import annotations

import collections
import uuid
from collections.abc import Sequence

from toolbelt.control import actors, writing
from toolbelt.core import errors
from toolbelt.store import audit, entries


def put(
    actor: actors.Actor,
    kind: str,
    names: Sequence[str],
    *,
    was: Sequence[str] | None = None,
    reason: str = "",
    batch: uuid.UUID | None = None,
    undoes: int | None = None,
) -> writing.Change:
    """Let these stand in this order; whatever is not named keeps its place, and they share theirs.

    ``was`` is the order in which the writer saw them: if it is another now, that raises Stale. Raises Refused for a
    kind that has no order, NotFound for a name that nobody has, and Refused for one that is named twice.
    """
    with writing.begin():
        stored = entries.names(kind)
        if not entries.is_ordered(kind):
            raise errors.Refused(f"A {kind} has no place of its own: they are listed by name.")
        _refuse_unknown(kind, names, stored)
        if twice := [name for name, times in collections.Counter(names).items() if times > 1]:
            raise errors.Refused(f"{', '.join(twice)} is named twice: it can stand in one place.")
        named, wanted = set(names), list(names)
        before = [name for name in stored if name in named]
        if was is not None and list(was) != before:
            raise errors.Stale(f"The order of {kind} entries", ", ".join(was), ", ".join(before))
        if before == wanted:
            return writing.Change(entry=None, before=before, after=wanted)
        entries.order(kind, filled(stored, wanted))
        number = audit.record(
            actor=actor.name,
            via=actor.via,
            action=f"{kind}.order",
            subject_kind=kind,
            subject_key=_first_that_moved(before, wanted),
            before={"order": before},
            after={"order": wanted},
            reason=reason,
            batch=batch,
            undoes=undoes,
        )
    return writing.Change(entry=number, before=before, after=wanted)


def move(
    actor: actors.Actor, kind: str, names: Sequence[str], *, to: int, reason: str = ""
) -> writing.Change:
    """Let these stand together, as they follow each other now, from the place ``to`` on (0: first; -1: last)."""
    with writing.begin():
        stored, named = entries.names(kind), set(names)
        _refuse_unknown(kind, names, stored)
        moved = [name for name in stored if name in named]
        rest = [name for name in stored if name not in named]
        place = len(rest) if to < 0 else min(to, len(rest))
        return put(actor, kind, [*rest[:place], *moved, *rest[place:]], reason=reason)


def restore(kind: str, name: str, place: int) -> None:
    """Put a thing that has just come back where it stood; a part of undoing its removal, and audited with it."""
    rest = [other for other in entries.names(kind) if other != name]
    entries.order(kind, [*rest[:place], name, *rest[place:]])


def names(kind: str) -> list[str]:
    """Name all that there are, in their order."""
    return entries.names(kind)


def filled(stored: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """Give all names in order: the wanted ones take, one after the other, the places that they have among all.

    >>> filled(["a", "b", "c", "d"], ["d", "a"])
    ['d', 'b', 'c', 'a']
    """
    named, following = set(wanted), iter(wanted)
    return [next(following) if name in named else name for name in stored]


def _refuse_unknown(kind: str, names: Sequence[str], stored: Sequence[str]) -> None:
    known = set(stored)
    for name in names:
        if name not in known:
            raise errors.NotFound(kind.replace("_", "-"), name, stored)


def _first_that_moved(before: Sequence[str], after: Sequence[str]) -> str:
    return next(new for old, new in zip(before, after, strict=True) if old != new)
