"""Reconstruction of an agent's past configuration from the audit log.

The log stores the value before and after each change. Undoing every change since a moment, newest first, turns today's
entry into the entry of that moment; repeating the changes turns that into today's. Where a change does not find the
value that the log expects (a row was written around the log, by raw SQL for example), the place is reported as a gap
and the log's value is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt.core.belts import vocabulary

# The fields of an agent's entry that hold switches and overrides, and their expiry. They are logged key by key.
_CONFIG, _ENDS = "tools_config", "ends"
Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change of one agent, as it is logged.

    With a ``key``, ``before`` and ``after`` are the values of that switch or override (None: unset). Without a key,
    they are fields of the entry by name; None if there was no such agent.
    """

    key: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """The entry (None if the agent did not exist), and the fields and keys for which the log is incomplete."""

    entry: dict[str, Any] | None
    gaps: tuple[str, ...] = ()


def rewind(now: Entry | None, changes: Iterable[Change]) -> Rebuilt:
    """Return the entry before all of the changes, which are given newest first."""
    return _apply(now, ((change.key, change.after, change.before) for change in changes))


def replay(then: Entry | None, changes: Iterable[Change]) -> Rebuilt:
    """Return the entry after all of the changes, which are given oldest first."""
    return _apply(then, ((change.key, change.before, change.after) for change in changes))


def _apply(start: Entry | None, steps: Iterable[tuple[str, Any, Any]]) -> Rebuilt:
    entry = None if start is None else dict(start)
    gaps: dict[str, None] = {}
    for key, expected, result in steps:
        if key:
            entry = {} if entry is None else entry
            config = switches(entry)
            if config.pop(key, None) != expected:
                gaps[key] = None
            entry.update(as_fields({**config, key: result}))
            entry = {name: value for name, value in entry.items() if value != {}}
        elif result is None:
            gaps.update(dict.fromkeys(_differing(entry or {}, expected)))
            entry = None
        elif expected is None:
            gaps.update(dict.fromkeys(entry or ()))
            entry = _fields(result)
        else:
            entry = {} if entry is None else entry
            gaps.update(
                dict.fromkeys(name for name in _known_fields(expected) if entry.get(name) != expected[name])
            )
            entry.update({name: result.get(name) for name in _known_fields(expected)})
    return Rebuilt(entry=None if entry is None else _tidy(entry), gaps=tuple(gaps))


def switches(entry: Entry) -> dict[str, Any]:
    """Return the switches and overrides of an entry by key, as they are logged
    (:func:`toolbelt.core.grants.switch_state`).
    """
    ends = entry.get(_ENDS) or {}
    return {
        key: {"on": on, "ends": ends[key]["at"], "then": ends[key].get("then")} if key in ends else on
        for key, on in (entry.get(_CONFIG) or {}).items()
    }


def as_fields(switched: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an entry that hold these switches and overrides: the inverse of :func:`switches`."""
    config: dict[str, bool] = {}
    ends: dict[str, Any] = {}
    for key, state in sorted(switched.items()):
        on = state.get("on") if isinstance(state, Mapping) else state
        if isinstance(on, bool):
            config[key] = on
        if key in config and isinstance(state, Mapping) and state.get("ends"):
            then = state.get("then")
            ends[key] = {"at": state["ends"], **({} if then is None else {"then": then})}
    return {_CONFIG: config, _ENDS: ends}


def _differing(entry: Entry, other: Any) -> list[str]:
    fields = _fields(other)
    return [name for name in {**entry, **fields} if entry.get(name) != fields.get(name)]


def _fields(written: Any) -> dict[str, Any]:
    """Return the fields of an agent's entry; the log also stores others, such as its position."""
    return {name: written[name] for name in _known_fields(written)}


def _known_fields(written: Any) -> list[str]:
    fields = vocabulary.KINDS["agent"].fields
    return [name for name in written if name in fields] if isinstance(written, Mapping) else []


def _tidy(entry: Entry) -> dict[str, Any]:
    """Return the entry in the order of the vocabulary, without fields that are not given."""
    fields = vocabulary.KINDS["agent"].fields
    return {name: entry[name] for name in fields if entry.get(name) is not None and entry.get(name) != {}}
