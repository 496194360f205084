"""The whole configuration as it was, rebuilt from the audit log.

The log stores the value before and after each change. Stepping back over every change since a moment, newest first,
turns today's configuration into that of the moment. Changes are ordered by their place in the log, never by their time:
what has expired is recorded later than it ended.

Where a change does not find the value that the log expects, a row was written around the log: the place is a gap, and
the log's value is used. Where the log says that something was written around it before a change, everything of that
which is older is uncertain, whether or not a value shows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from toolbelt.core.belts import vocabulary

Entry = Mapping[str, Any]
Document = Mapping[str, Any]
# What the log stores of a removed entry besides its fields: its position among those of its kind, from 0.
POSITION = "place"
# The field of a change of the order of a kind.
_ORDER = "order"
# The fields of an agent's entry that hold switches and overrides, and their expiry. They are logged key by key.
_CONFIG, _ENDS = "tools_config", "ends"
# Changes of an entry's row that are no part of the entry.
_BESIDE = frozenset({"operators", "purge"})
# A category has no fields: its entry in the log is its name.
_NAME = "name"
_KNOWN: Mapping[str, tuple[str, ...]] = {
    name: kind.fields or (_NAME,) for name, kind in vocabulary.KINDS.items()
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change, as it is logged (docs/reference/audit-actions.md: Fields of an entry).

    With a ``key``, ``before`` and ``after`` are the values of that switch or override (None: unset). Without a key,
    they are fields of the entry by name; None if there was no such entry. ``unlogged`` is what was written around the
    log before it, None if nothing was.
    """

    action: str
    kind: str
    name: str
    key: str = ""
    before: Any
    after: Any
    unlogged: Mapping[str, Any] | None = None


class Gap(NamedTuple):
    """A field of an entry, or a switch or override of an agent, for which the log is incomplete."""

    kind: str
    name: str
    field: str


class History:
    """A configuration that steps back through the log. It begins with what is stored, as it is stored."""

    def __init__(self, document: Document) -> None:
        # Sections are read when they are needed: most changes are about agents, and the tools are many.
        self._document = document
        self._entries: dict[vocabulary.KindName, dict[str, Entry]] = {}
        # In the order in which they are found.
        self._gaps: dict[Gap, None] = {}
        self._is_uncertain = False
        self._uncertain_agents: set[str] = set()

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """Return the places where a change did not find what the log expects."""
        return tuple(self._gaps)

    def gaps_of(self, kind: str, name: str) -> tuple[str, ...]:
        """Return the fields and keys of one entry for which the log is incomplete."""
        return tuple(gap.field for gap in self._gaps if gap[:2] == (kind, name))

    def is_uncertain(self, agent: str) -> bool:
        """Return whether something was written around the log since, on which answers of this agent depend."""
        return self._is_uncertain or agent in self._uncertain_agents

    @property
    def is_catalog_uncertain(self) -> bool:
        """Return whether the catalog was written around the log since."""
        return self._is_uncertain

    @property
    def uncertain_agents(self) -> tuple[str, ...]:
        """Return the agents that were written around the log since."""
        return tuple(sorted(self._uncertain_agents))

    def document(self) -> dict[str, Any]:
        """Return the configuration as a belt, with what is observed in it; empty sections are left out."""
        return {
            kind.section: list(self._of(name).values() if kind.named_by else self._of(name))
            for name, kind in vocabulary.KINDS.items()
            if self._of(name)
        }

    def find(self, kind: vocabulary.KindName, name: str) -> Entry | None:
        """Return an entry; None if it did not exist."""
        return self._of(kind).get(name)

    def names(self, kind: vocabulary.KindName) -> list[str]:
        """Return the names of the entries of a kind, in order."""
        return list(self._of(kind))

    def doubt(self, unlogged: Mapping[str, Any] | None) -> None:
        """Note what was written around the log before this moment; None: nothing."""
        if unlogged is not None:
            self._is_uncertain = self._is_uncertain or bool(unlogged.get("catalog"))
            self._uncertain_agents.update(unlogged.get("agents", ()))

    def step_back(self, change: Change) -> None:
        """Undo a change, the newest of those that are left. What is no configuration is ignored."""
        self.doubt(change.unlogged)
        act = change.action.rpartition(".")[2]
        kind = next((name for name in vocabulary.KINDS if name == change.kind), None)
        if kind is None or act in _BESIDE:
            return
        entries = self._of(kind)
        if act == _ORDER:
            self._reorder(kind, change)
        elif change.key:
            self._switch_back(kind, change)
        elif change.after is None:
            if change.name in entries:
                self._note(change, _differing(entries.pop(change.name), {}))
            self._insert(kind, change.name, change.before or {})
        elif change.before is None:
            self._note(change, _differing(entries.pop(change.name, {}), fields_of(kind, change.after)))
        else:
            self._change_back(kind, change)

    def _change_back(self, kind: vocabulary.KindName, change: Change) -> None:
        entry = dict(self._of(kind).get(change.name, {}))
        before, after = fields_of(kind, change.before), fields_of(kind, change.after)
        self._note(change, [name for name in after if entry.get(name) != after[name]])
        self._put(kind, change.name, {**entry, **before})

    def _switch_back(self, kind: vocabulary.KindName, change: Change) -> None:
        entry = dict(self._of(kind).get(change.name, {}))
        if switches(entry).get(change.key) != change.after:
            self._note(change, [change.key])
        for field, restored in as_fields({change.key: change.before}).items():
            rest = {key: value for key, value in (entry.get(field) or {}).items() if key != change.key}
            entry[field] = dict(sorted({**rest, **restored}.items()))
        self._put(kind, change.name, entry)

    def _reorder(self, kind: vocabulary.KindName, change: Change) -> None:
        entries = self._of(kind)
        before, after = ([*_names(side)] for side in (change.before, change.after))
        moved = [name for name in before if name in entries]
        if [name for name in entries if name in set(moved)] != [name for name in after if name in entries]:
            self._note(change, [_ORDER])
        following = iter(moved)
        self._entries[kind] = {
            (name := next(following) if old in moved else old): entries[name] for old in entries
        }

    def _insert(self, kind: vocabulary.KindName, name: str, removed: Entry) -> None:
        """Insert an entry that was removed, at its position; of a kind without an order, by its name."""
        entries = self._of(kind)
        place = removed.get(POSITION)
        names = list(entries)
        if not isinstance(place, int):
            place = next((at for at, other in enumerate(names) if other > name), len(names))
        names.insert(place, name)
        entry = tidy(kind, fields_of(kind, removed))
        self._entries[kind] = {key: entry if key == name else entries[key] for key in names}

    def _put(self, kind: vocabulary.KindName, name: str, entry: Entry) -> None:
        self._of(kind)[name] = tidy(kind, entry)

    def _of(self, kind: vocabulary.KindName) -> dict[str, Entry]:
        """Return the entries of a kind by name, in order."""
        if kind not in self._entries:
            spec = vocabulary.KINDS[kind]
            self._entries[kind] = {
                str(spec.name_of(entry)): entry if spec.named_by else {_NAME: entry}
                for entry in self._document.get(spec.section, ())
            }
        return self._entries[kind]

    def _note(self, change: Change, fields: Iterable[str]) -> None:
        self._gaps.update(dict.fromkeys(Gap(change.kind, change.name, field) for field in fields))


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
    """Return the fields of an entry that hold these switches and overrides: the inverse of :func:`switches`.

    Who set an end is not logged with it, but is the actor of the change.
    """
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


def _differing(entry: Entry, other: Entry) -> list[str]:
    return [name for name in {**entry, **other} if entry.get(name) != other.get(name)]


def fields_of(kind: str, written: Any) -> dict[str, Any]:
    """Return the fields of an entry of this kind; the log also stores others, such as its position."""
    return (
        {name: written[name] for name in written if name in _KNOWN[kind]}
        if isinstance(written, Mapping)
        else {}
    )


def tidy(kind: str, entry: Entry) -> Entry:
    """Return an entry in the order of the vocabulary, without fields that are not given."""
    return {
        name: entry[name]
        for name in _KNOWN[kind]
        if entry.get(name) is not None and (entry[name] or name not in (_CONFIG, _ENDS))
    }


def _names(side: Any) -> Iterator[str]:
    yield from side.get(_ORDER, ()) if isinstance(side, Mapping) else ()
