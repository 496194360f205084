"""The differences of an entry, field by field, for the audit log and for an import.

For a list, these are the added and removed items; for a mapping, the changed keys; for a long text, an excerpt from the
first difference on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from toolbelt.web.kit import pieces, texts, words

# Longer texts are shown from their first difference on, with this many characters before it.
LONG_TEXT, MAX_LEADING = 120, 40
# The most lines that are shown for one entry; the rest are counted.
MAX_COUNT = 40


def lines(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[pieces.Difference, ...]:
    """Return each field that differs, with its values before and after."""
    every = [line for name in {**before, **after} for line in _diff(name, before.get(name), after.get(name))]
    visible = tuple(_visible(line) for line in every[:MAX_COUNT])
    if len(every) <= MAX_COUNT:
        return visible
    return (
        *visible,
        pieces.Difference(label="", before=f"{len(every) - MAX_COUNT} more", after="not shown here"),
    )


def _visible(line: pieces.Difference) -> pieces.Difference:
    """Return a line with its invisible characters named: one from a server could reverse the text beside it."""
    label, before, after = (
        texts.visible(" ".join(text.splitlines())) for text in (line.label, line.before, line.after)
    )
    return pieces.Difference(label=label, before=before, after=after)


def _diff(path: str, before: Any, after: Any) -> Iterator[pieces.Difference]:
    if json.dumps(before, sort_keys=True, default=str) == json.dumps(after, sort_keys=True, default=str):
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in {**before, **after}:
            yield from _diff(f"{path}.{name}", before.get(name), after.get(name))
    elif _are_named(before) and _are_named(after) and (before or after):
        yield from _diff_lists(path, before or [], after or [])
    elif isinstance(before, str) and isinstance(after, str) and max(len(before), len(after)) > LONG_TEXT:
        start = max(0, texts.common_start(before, after) - MAX_LEADING)
        yield pieces.Difference(label=path, before=_excerpt(before, start), after=_excerpt(after, start))
    else:
        yield pieces.Difference(label=path, before=words.value(before), after=words.value(after))


def _diff_lists(path: str, before: Sequence[Any], after: Sequence[Any]) -> Iterator[pieces.Difference]:
    old, new = ({_item_name(item): item for item in side} for side in (before, after))
    changed = [name for name in {**old, **new} if (name in old) != (name in new)]
    for name in changed:
        is_present = name in new
        yield pieces.Difference(
            label=f"{path}: {name}",
            before="absent" if is_present else "present",
            after="present" if is_present else "removed",
        )
    for name in old:
        if name in new and old[name] != new[name]:
            options = [_options_text(item) for item in (old[name], new[name])]
            yield pieces.Difference(label=f"{path}: {name}", before=options[0], after=options[1])
    if not changed and list(old) != list(new):
        yield pieces.Difference(label=f"{path}, in order", before=", ".join(old), after=", ".join(new))


def _options_text(item: Any) -> str:
    """Return the options of a list item, without its name."""
    if isinstance(item, str):
        return "plain"
    return words.value({name: value for name, value in item.items() if name not in ("tool", "name")})


def _are_named(value: Any) -> bool:
    """Return whether the value is a list of names, of tools with options or of named entries, or None."""
    if value is None:
        return True
    return isinstance(value, list) and all(
        isinstance(item, str) or (isinstance(item, Mapping) and bool({"tool", "name"} & item.keys()))
        for item in value
    )


def _item_name(item: Any) -> str:
    return item if isinstance(item, str) else str(item.get("tool") or item.get("name"))


def _excerpt(text: str, start: int) -> str:
    excerpt = text[start : start + words.MAX_VALUE_LENGTH]
    return f"{'…' if start else ''}{excerpt}{'…' if start + len(excerpt) < len(text) else ''}"
