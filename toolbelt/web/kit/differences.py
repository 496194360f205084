"""What became of an entry, field by field, for the audit log and for an import.

Of a list it is said what came and went; of a mapping, what changed in it; of a long text, where it begins to differ.
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


def lines(
    before: Mapping[str, Any], after: Mapping[str, Any], most: int = MAX_COUNT
) -> tuple[pieces.Difference, ...]:
    """Return each field that differs, with the value before and after."""
    found = [line for name in {**before, **after} for line in _of(name, before.get(name), after.get(name))]
    shown = tuple(_visible(line) for line in found[:most])
    if len(found) <= most:
        return shown
    return (*shown, pieces.Difference(what="", before=f"{len(found) - most} more", after="not shown here"))


def _visible(line: pieces.Difference) -> pieces.Difference:
    """Name what cannot be seen: names and values may be a server's, and would turn round what stands beside them."""
    what, before, after = (
        texts.visible(" ".join(one.splitlines())) for one in (line.what, line.before, line.after)
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
        start = max(0, _same(before, after) - BEFORE)
        yield pieces.Difference(what=path, before=_from(before, start), after=_from(after, start))
    else:
        yield pieces.Difference(what=path, before=words.value(before), after=words.value(after))


def _of_lists(path: str, before: Sequence[Any], after: Sequence[Any]) -> Iterator[pieces.Difference]:
    had, has = ({_name(one): one for one in side} for side in (before, after))
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
            inside = [_inside(one) for one in (had[name], has[name])]
            yield pieces.Difference(what=f"{path}: {name}", before=inside[0], after=inside[1])
    if not came_or_went and list(had) != list(has):
        yield pieces.Difference(what=f"{path}, in order", before=", ".join(had), after=", ".join(has))


def _inside(one: Any) -> str:
    """Print what an item is beside its name."""
    if isinstance(one, str):
        return "plain"
    return words.value({name: value for name, value in one.items() if name not in ("tool", "name")})


def _are_named(value: Any) -> bool:
    """Return whether it is a list of names, of tools with options, or of things with a name; or not there at all."""
    if value is None:
        return True
    return isinstance(value, list) and all(
        isinstance(one, str) or (isinstance(one, Mapping) and bool({"tool", "name"} & one.keys()))
        for one in value
    )


def _name(one: Any) -> str:
    return one if isinstance(one, str) else str(one.get("tool") or one.get("name"))


def _same(one: str, other: str) -> int:
    """Return how far two texts are the same."""
    return next(
        (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )


def _from(text: str, start: int) -> str:
    shown = text[start : start + words.MAX_VALUE_LENGTH]
    return f"{'…' if start else ''}{shown}{'…' if start + len(shown) < len(text) else ''}"
