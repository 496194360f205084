"""In what do two agents differ, and what is one of them with some of the other's ways?

A difference is one row that can be copied on its own: a setting, a switch or override, a tool that is always on, a
toolkit that may be loaded. Copying every row makes the one as the other is; copying none leaves it as it was.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from toolbelt.core import schema
from toolbelt.core.belts import rebuilding, vocabulary

Part = Literal["setting", "switch", "always-on", "loadable", "order"]
Entry = Mapping[str, Any]

# What says which agent it is, and not how it works: that differs between any two of them, and is nobody else's.
IDENTITY = ("key", "title", "description", "role")
_SINGLY = frozenset({"tools_config", "ends", "tools", "allowed_toolkits", "initial_toolkits"})
# Whether an agent is put away says nothing of what it has, and is not to be copied with that.
_NOT_COMPARED = ("key", "archived")
SETTINGS = tuple(name for name in vocabulary.KINDS["agent"].fields if name not in (*_SINGLY, *_NOT_COMPARED))


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One difference: what it is about, and its value on both sides; None: unset, or not there.

    Of a ``switch`` (or override) the value is on or off, or that with its end. Of a tool that is ``always-on`` it is
    true, or its options; of a ``loadable`` toolkit "allowed" or "initial"; of the ``order`` of either, all its names.
    """

    part: Part
    name: str
    a: Any
    b: Any

    @property
    def id(self) -> str:
        """Name the row among all of them: ``switch:devops``."""
        return f"{self.part}:{self.name}"


def differences(a: Entry, b: Entry, settings: Collection[str] = SETTINGS) -> tuple[Row, ...]:
    """List in what the agents ``a`` and ``b`` differ; of their settings only in those that are named."""
    rows: list[Row] = []

    def compare(part: Part, names: Iterable[str], ours: Entry, theirs: Entry) -> None:
        rows.extend(
            Row(part=part, name=name, a=ours.get(name), b=theirs.get(name))
            for name in names
            # By their texts, as 1 and true are two things in options.
            if schema.canonical(ours.get(name)) != schema.canonical(theirs.get(name))
        )

    compare("setting", (name for name in SETTINGS if name in settings), a, b)
    for part, of in _LISTED.items():
        ours, theirs = of(a), of(b)
        names = sorted({**ours, **theirs}) if part == "switch" else {**ours, **theirs}
        compare(part, names, ours, theirs)
        # What is new goes last: where that does not come to the same order, the order is a row of its own.
        together = [name for name in {**theirs, **ours} if name in ours]
        if part != "switch" and together != list(ours):
            rows.append(Row(part="order", name=part, a=list(ours), b=list(theirs)))
    return tuple(rows)


def copied(b: Entry, rows: Iterable[Row]) -> dict[str, Any]:
    """Give the entry ``b`` with what the rows say of ``a``. It is as sound as what the rows name still exists."""
    entry = dict(b)
    by_part: dict[Part, dict[str, Any]] = {}
    for row in rows:
        by_part.setdefault(row.part, {})[row.name] = row.a
    entry.update(by_part.get("setting", {}))
    orders = by_part.get("order", {})
    for part, of in _LISTED.items():
        taken = by_part.get(part, {})
        if not taken and part not in orders:
            continue
        held = {name: value for name, value in {**of(b), **taken}.items() if value is not None}
        first = [name for name in orders.get(part, ()) if name in held]
        kept = {name: held[name] for name in dict.fromkeys([*first, *held])}
        entry.update(_WRITTEN[part](kept))
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
    "switch": rebuilding.switches,
    "always-on": _always_on,
    "loadable": _loadable,
}
_WRITTEN: Mapping[Part, Any] = {
    "switch": rebuilding.as_fields,
    "always-on": lambda kept: {
        "tools": [
            name if options is True else {"tool": name, "options": options} for name, options in kept.items()
        ]
    },
    "loadable": lambda kept: {
        "allowed_toolkits": list(kept),
        "initial_toolkits": [name for name, how in kept.items() if how == "initial"],
    },
}
