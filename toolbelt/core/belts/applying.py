"""A logged change, made to another configuration than its own: to one of the past.

A switch, an override or a single value is set. A list gains what the change adds to it, and loses what it removes. What
the change creates exists, and what it removes does not. An entry that does not exist there is not changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from toolbelt.core.belts import history, vocabulary

_ORDER = "order"


def changed(kind: vocabulary.KindName, entry: history.Entry | None, change: history.Change) -> Any:
    """Return the entry with the change made to it; None if there is none then."""
    if change.action.endswith(f".{_ORDER}"):
        return entry
    if change.key:
        return None if entry is None else _switched(kind, entry, change)
    before, after = (history.fields_of(kind, side) for side in (change.before, change.after))
    if change.after is None:
        return None
    if change.before is None:
        return history.tidy(kind, {**(entry or {}), **after})
    if entry is None:
        return None
    values = {
        name: _value(entry.get(name), before.get(name), after.get(name)) for name in {**before, **after}
    }
    return history.tidy(kind, {**entry, **values})


def reordered(names: Iterable[str], change: history.Change) -> list[str]:
    """Return names in the order of a change of their order; those that it does not name stay where they are."""
    names = list(names)
    wanted = change.after.get(_ORDER, ()) if isinstance(change.after, Mapping) else ()
    following = iter([name for name in wanted if name in names])
    moved = set(wanted)
    return [next(following) if name in moved else name for name in names]


def _switched(kind: vocabulary.KindName, entry: history.Entry, change: history.Change) -> history.Entry:
    written = dict(entry)
    for name, set_ in history.as_fields({change.key: change.after}).items():
        rest = {key: value for key, value in (written.get(name) or {}).items() if key != change.key}
        written[name] = dict(sorted({**rest, **set_}.items()))
    return history.tidy(kind, written)


def _value(now: Any, before: Any, after: Any) -> Any:
    """Return a value with the change from ``before`` to ``after`` made to it."""
    lists = [side for side in (before, after) if side is not None]
    if lists and all(isinstance(side, list) for side in lists) and isinstance(now, list | None):
        removed = [item for item in before or () if item not in (after or ())]
        added = [item for item in after or () if item not in (before or ())]
        kept = [item for item in now or () if item not in removed]
        return [*kept, *(item for item in added if item not in kept)]
    if lists and all(isinstance(side, Mapping) for side in lists) and isinstance(now, Mapping | None):
        before, after = before or {}, after or {}
        kept_ = {key: value for key, value in (now or {}).items() if not (key in before and key not in after)}
        return kept_ | {key: value for key, value in after.items() if before.get(key) != value}
    return after
