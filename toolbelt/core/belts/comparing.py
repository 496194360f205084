"""Comparison of two agents, and copying settings of one to the other.

A difference is one row that can be copied on its own: a setting, a switch or override, an always-on tool, a toolkit
that may be loaded. Copying every row makes both agents equal; copying none changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from toolbelt.core import schema
from toolbelt.core.belts import history, vocabulary

Part = Literal["setting", "switch", "always-on", "loadable", "order"]
Entry = Mapping[str, Any]

# What identifies an agent rather than configures it: it differs between any two agents and is never copied.
IDENTITY = ("key", "title", "description", "role")
_SINGLY = frozenset({"tools_config", "ends", "tools", "allowed_toolkits", "initial_toolkits"})
# Archiving concerns the agent itself, not what it has: it is neither compared nor copied.
_NOT_COMPARED = ("key", "archived")
SETTINGS = tuple(name for name in vocabulary.KINDS["agent"].fields if name not in (*_SINGLY, *_NOT_COMPARED))


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One difference: what it concerns, and its value on both sides (None: unset or missing).

    The value of a ``switch`` (or override) is on or off, with its expiry if it has one. That of an ``always-on`` tool
    is true, or its options; that of a ``loadable`` toolkit "allowed" or "initial"; that of an ``order`` is the list of
    all names.
    """

    part: Part
    name: str
    a: Any
    b: Any

    @property
    def id(self) -> str:
        """Return the row's identifier: ``switch:devops``."""
        return f"{self.part}:{self.name}"


def differences(a: Entry, b: Entry, settings: Collection[str] = SETTINGS) -> tuple[Row, ...]:
    """Return the differences between agents ``a`` and ``b``; of their settings, only those in ``settings``."""
    rows: list[Row] = []

    def compare(part: Part, names: Iterable[str], ours: Entry, theirs: Entry) -> None:
        rows.extend(
            Row(part=part, name=name, a=ours.get(name), b=theirs.get(name))
            for name in names
            # Compare the JSON, because in options 1 and true are different.
            if schema.canonical(ours.get(name)) != schema.canonical(theirs.get(name))
        )

    compare("setting", (name for name in SETTINGS if name in settings), a, b)
    for part, read_part in _LISTED.items():
        ours, theirs = read_part(a), read_part(b)
        names = sorted({**ours, **theirs}) if part == "switch" else {**ours, **theirs}
        compare(part, names, ours, theirs)
        # New items are appended: if that does not result in the same order, the order is a row of its own.
        together = [name for name in {**theirs, **ours} if name in ours]
        if part != "switch" and together != list(ours):
            rows.append(Row(part="order", name=part, a=list(ours), b=list(theirs)))
    return tuple(rows)


def copy_rows(b: Entry, rows: Iterable[Row]) -> dict[str, Any]:
    """Return the entry ``b`` with the values that the rows have for ``a``. It may name things that no longer exist."""
    entry = dict(b)
    by_part: dict[Part, dict[str, Any]] = {}
    for row in rows:
        by_part.setdefault(row.part, {})[row.name] = row.a
    entry.update(by_part.get("setting", {}))
    orders = by_part.get("order", {})
    for part, read_part in _LISTED.items():
        values = by_part.get(part, {})
        if not values and part not in orders:
            continue
        merged = {name: value for name, value in {**read_part(b), **values}.items() if value is not None}
        first = [name for name in orders.get(part, ()) if name in merged]
        ordered = {name: merged[name] for name in dict.fromkeys([*first, *merged])}
        entry.update(_WRITTEN[part](ordered))
    return {name: value for name, value in entry.items() if value not in (None, [], {})}


def _always_on(entry: Entry) -> dict[str, Any]:
    uses = entry.get("tools") or ()
    return {
        use if isinstance(use, str) else use["tool"]: True
        if isinstance(use, str)
        else use.get("options", True)
        for use in uses
    }


def _loadable(entry: Entry) -> dict[str, Any]:
    initial = entry.get("initial_toolkits") or ()
    return {key: "initial" if key in initial else "allowed" for key in entry.get("allowed_toolkits") or ()}


_LISTED: Mapping[Part, Any] = {
    "switch": history.switches,
    "always-on": _always_on,
    "loadable": _loadable,
}
_WRITTEN: Mapping[Part, Any] = {
    "switch": history.as_fields,
    "always-on": lambda items: {
        "tools": [
            name if options is True else {"tool": name, "options": options} for name, options in items.items()
        ]
    },
    "loadable": lambda items: {
        "allowed_toolkits": list(items),
        "initial_toolkits": [name for name, how in items.items() if how == "initial"],
    },
}
