"""The differences of an entry, field by field, for the audit log and for an import.

Of a list, they are the items that were added and removed; of a mapping, the keys that changed; of a long text, the part
that begins to differ.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from toolbelt.web.kit import pieces, texts, words

# Texts that are longer are shown from where they differ, with so much before it.
LONG, BEFORE = 120, 40
# How many lines of one entry are shown; the rest is counted.
MAX_COUNT = 40


def lines(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[pieces.Difference, ...]:
    """Return each field that differs, with the value before and after."""
    every = [line for name in {**before, **after} for line in _of(name, before.get(name), after.get(name))]
    shown = tuple(_visible(line) for line in every[:MAX_COUNT])
    if len(every) <= MAX_COUNT:
        return shown
    return (
        *shown,
        pieces.Difference(what="", before=f"{len(every) - MAX_COUNT} more", after="not shown here"),
    )


def _visible(line: pieces.Difference) -> pieces.Difference:
    """Return a line with its invisible characters named: one from a server could reverse the text beside it."""
    what, before, after = (
        texts.visible(" ".join(text.splitlines())) for text in (line.what, line.before, line.after)
    )
    return pieces.Difference(what=what, before=before, after=after)


def _of(path: str, before: Any, after: Any) -> Iterator[pieces.Difference]:
    if json.dumps(before, sort_keys=True, default=str) == json.dumps(after, sort_keys=True, default=str):
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in {**before, **after}:
            yield from _of(f"{path}.{name}", before.get(name), after.get(name))
    elif _are_named(before) and _are_named(after) and (before or after):
        yield from _of_lists(path, before or [], after or [])
    elif isinstance(before, str) and isinstance(after, str) and max(len(before), len(after)) > LONG:
        start = max(0, texts.common_start(before, after) - BEFORE)
        yield pieces.Difference(what=path, before=_from(before, start), after=_from(after, start))
    else:
        yield pieces.Difference(what=path, before=words.value(before), after=words.value(after))


def _of_lists(path: str, before: Sequence[Any], after: Sequence[Any]) -> Iterator[pieces.Difference]:
    had, has = ({_name(item): item for item in side} for side in (before, after))
    came_or_went = [name for name in {**had, **has} if (name in had) != (name in has)]
    for name in came_or_went:
        there = name in has
        yield pieces.Difference(
            what=f"{path}: {name}",
            before="absent" if there else "present",
            after="present" if there else "removed",
        )
    for name in had:
        if name in has and had[name] != has[name]:
            inside = [_inside(item) for item in (had[name], has[name])]
            yield pieces.Difference(what=f"{path}: {name}", before=inside[0], after=inside[1])
    if not came_or_went and list(had) != list(has):
        yield pieces.Difference(what=f"{path}, in order", before=", ".join(had), after=", ".join(has))


def _inside(item: Any) -> str:
    """Print what an item is beside its name."""
    if isinstance(item, str):
        return "plain"
    return words.value({name: value for name, value in item.items() if name not in ("tool", "name")})


def _are_named(value: Any) -> bool:
    """Return whether it is a list of names, of tools with options, or of things with a name; or not there at all."""
    if value is None:
        return True
    return isinstance(value, list) and all(
        isinstance(item, str) or (isinstance(item, Mapping) and bool({"tool", "name"} & item.keys()))
        for item in value
    )


def _name(item: Any) -> str:
    return item if isinstance(item, str) else str(item.get("tool") or item.get("name"))


def _from(text: str, start: int) -> str:
    shown = text[start : start + words.MAX_VALUE_LENGTH]
    return f"{'…' if start else ''}{shown}{'…' if start + len(shown) < len(text) else ''}"
