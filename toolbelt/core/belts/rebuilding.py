"""What was an agent at some moment of the past, and what became of that since? Worked out from the log of its changes.

The log keeps what each change found and what it left. So the entry of today, with every change since that moment
taken back, newest first, is the entry of then; and the entry of then, with every change made again, is that of today.
What the log does not know of (rows written behind it, in raw SQL, say) shows where a change does not find what the
log says that it found: such a place is named, and the log is believed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt.core.belts import vocabulary

# The fields in which an agent's entry holds its switches and overrides, and when some of them end: logged key by key.
_CONFIG, _ENDS = "tools_config", "ends"
Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change of one agent, as the log keeps it.

    With a ``key`` it is that of a switch or an override, from ``before`` to ``after``; None: unset. Without one these
    are fields of the entry by their names; None for all of them: there was no such agent.
    """

    key: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """The entry, None where there was none; and the fields and keys of which the log does not know everything."""

    entry: dict[str, Any] | None
    gaps: tuple[str, ...] = ()


def back(now: Entry | None, changes: Iterable[Change]) -> Rebuilt:
    """Take the changes back, which are given newest first: what was the entry before all of them?"""
    return _through(now, ((one.key, one.after, one.before) for one in changes))


def forward(then: Entry | None, changes: Iterable[Change]) -> Rebuilt:
    """Make the changes again, which are given oldest first: what is the entry after all of them?"""
    return _through(then, ((one.key, one.before, one.after) for one in changes))


def _through(start: Entry | None, steps: Iterable[tuple[str, Any, Any]]) -> Rebuilt:
    entry = None if start is None else dict(start)
    gaps: dict[str, None] = {}
    for key, found, left in steps:
        if key:
            entry = {} if entry is None else entry
            switched = switches(entry)
            if switched.pop(key, None) != found:
                gaps[key] = None
            entry.update(as_fields({**switched, key: left}))
            entry = {name: value for name, value in entry.items() if value != {}}
        elif left is None:
            gaps.update(dict.fromkeys(_differing(entry or {}, found)))
            entry = None
        elif found is None:
            gaps.update(dict.fromkeys(entry or ()))
            entry = _fields(left)
        else:
            entry = {} if entry is None else entry
            gaps.update(dict.fromkeys(name for name in _known(found) if entry.get(name) != found[name]))
            entry.update({name: left.get(name) for name in _known(found)})
    return Rebuilt(entry=None if entry is None else _tidy(entry), gaps=tuple(gaps))


def switches(entry: Entry) -> dict[str, Any]:
    """Give the switches and overrides of an entry by key, as the log says them (:func:`toolbelt.core.grants.said`)."""
    ends = entry.get(_ENDS) or {}
    return {
        key: {"on": on, "ends": ends[key]["at"], "then": ends[key].get("then")} if key in ends else on
        for key, on in (entry.get(_CONFIG) or {}).items()
    }


def as_fields(switched: Mapping[str, Any]) -> dict[str, Any]:
    """Write switches and overrides as the fields of an entry that hold them: the inverse of :func:`switches`."""
    config: dict[str, bool] = {}
    ends: dict[str, Any] = {}
    for key, said in sorted(switched.items()):
        on = said.get("on") if isinstance(said, Mapping) else said
        if isinstance(on, bool):
            config[key] = on
        if key in config and isinstance(said, Mapping) and said.get("ends"):
            then = said.get("then")
            ends[key] = {"at": said["ends"], **({} if then is None else {"then": then})}
    return {_CONFIG: config, _ENDS: ends}


def _differing(one: Entry, other: Any) -> list[str]:
    fields = _fields(other)
    return [name for name in {**one, **fields} if one.get(name) != fields.get(name)]


def _fields(written: Any) -> dict[str, Any]:
    """Give what an agent's entry has; what the log keeps beside it (its place among others) is not the entry's."""
    return {name: written[name] for name in _known(written)}


def _known(written: Any) -> list[str]:
    fields = vocabulary.KINDS["agent"].fields
    return [name for name in written if name in fields] if isinstance(written, Mapping) else []


def _tidy(entry: Entry) -> dict[str, Any]:
    """Give the entry as it is written: in the order of the vocabulary, without what is not given."""
    fields = vocabulary.KINDS["agent"].fields
    return {name: entry[name] for name in fields if entry.get(name) is not None and entry.get(name) != {}}
