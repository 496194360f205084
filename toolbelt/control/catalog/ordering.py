"""The order of toolkits, agents, loadouts, sub-apps and plugins.

The order of toolkits is that of their sections in the policy, so it is changed like everything else: compared, audited,
undone.
"""

from __future__ import annotations

import collections
from collections.abc import Sequence

from toolbelt.control import writing
from toolbelt.core import errors
from toolbelt.store import entries


def set_order(
    write: writing.Write, kind: str, names: Sequence[str], *, was: Sequence[str] | None = None
) -> writing.Change:
    """Put these in this order; the others keep their positions, and these share theirs.

    ``was`` is the order that the writer saw: raise Stale if it is another now. Raise Refused for a kind without an
    order or a name that is repeated, or NotFound for a name that does not exist.
    """
    with writing.begin():
        stored = entries.names(kind)
        if not entries.is_ordered(kind):
            raise errors.Refused(f"A {kind} has no position: they are listed by name.")
        _refuse_unknown(kind, names, stored)
        if repeated := [name for name, times in collections.Counter(names).items() if times > 1]:
            raise errors.Refused(f"{', '.join(repeated)} is named twice: name it once.")
        name_set, requested = set(names), list(names)
        before = [name for name in stored if name in name_set]
        if was is not None and list(was) != before:
            raise errors.Stale(
                f"The order of {kind} entries",
                ", ".join(was),
                ", ".join(before),
                by=writing.author(write, kind, fields=["order"]),
            )
        if before == requested:
            return writing.Change(entry=None, before=before, after=requested)
        entries.order(kind, merge_order(stored, requested))
        number = writing.record(
            write,
            kind,
            _first_that_moved(before, requested),
            action=f"{kind}.order",
            before={"order": before},
            after={"order": requested},
        )
    return writing.Change(entry=number, before=before, after=requested)


def move(write: writing.Write, kind: str, names: Sequence[str], *, to: int) -> writing.Change:
    """Move these together to the position ``to`` (0: first; -1: last), in their current order."""
    with writing.begin():
        stored, name_set = entries.names(kind), set(names)
        _refuse_unknown(kind, names, stored)
        moved = [name for name in stored if name in name_set]
        others = [name for name in stored if name not in name_set]
        position = len(others) if to < 0 else min(to, len(others))
        return set_order(write, kind, [*others[:position], *moved, *others[position:]])


def restore(kind: str, name: str, position: int) -> None:
    """Move a thing that has just been restored to its position; part of undoing its removal, and audited with it."""
    others = [other for other in entries.names(kind) if other != name]
    entries.order(kind, [*others[:position], name, *others[position:]])


def names(kind: str) -> list[str]:
    """Return all names of a kind, in order."""
    return entries.names(kind)


def merge_order(stored: Sequence[str], order: Sequence[str]) -> list[str]:
    """Return all names in order: those in ``order`` take, in their order, the positions that they have among all.

    >>> merge_order(["a", "b", "c", "d"], ["d", "a"])
    ['d', 'b', 'c', 'a']
    """
    name_set, following = set(order), iter(order)
    return [next(following) if name in name_set else name for name in stored]


def _refuse_unknown(kind: str, names: Sequence[str], stored: Sequence[str]) -> None:
    existing = set(stored)
    for name in names:
        if name not in existing:
            raise errors.NotFound(kind.replace("_", "-"), name, stored)


def _first_that_moved(before: Sequence[str], after: Sequence[str]) -> str:
    return next(new for old, new in zip(before, after, strict=True) if old != new)
