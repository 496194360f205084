"""The differences of an entry: field by field for the audit log and an import, and in short for a confirmation.

For a list, these are the added and removed items; for a mapping, the changed keys; for a long text, an excerpt from the
first difference on.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from toolbelt.web.kit import pieces, texts, words

# Longer texts are shown from their first difference on, with this many characters before it.
LONG_TEXT, MAX_LEADING = 120, 40
# The most lines that are shown for one entry; the rest are counted.
MAX_COUNT = 40
# If a list gained or lost more names than this, only the first ones are shown.
MAX_NAMES = 3
# The most characters of a value in a summary.
MAX_LENGTH = 160
_ARGUMENT = "input_schema.properties."


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


def labeled(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[pieces.Difference, ...]:
    """Return each field that differs with a label for readers; long changes of lists come first, in short."""
    listed = {
        field: summary
        for field in {**before, **after}
        if (summary := _list_changes(field, before.get(field), after.get(field)))
    }
    rest = [{name: value for name, value in side.items() if name not in listed} for side in (before, after)]
    shown = (*itertools.chain.from_iterable(listed.values()), *lines(*rest))
    return tuple(replace(line, label=_field_label(line.label)) for line in shown)


def summaries(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[pieces.Difference]:
    """Return the keys that differ, with their values; for lists, the items that are removed and added."""
    for key in after:
        old, new = before.get(key), after[key]
        if isinstance(old, list) and isinstance(new, list):
            removed = [item for item in old if item not in new]
            added = [item for item in new if item not in old]
            is_reordered = not removed and not added
            old, new = (None, "same entries, new order") if is_reordered else (removed or None, added or None)
        yield pieces.Difference(
            label=key.replace("_", " "),
            before="" if old is None else _value_text(old),
            after="" if new is None else _value_text(new),
        )


def _value_text(value: object) -> str:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return words.cut(", ".join(value), MAX_LENGTH)
    return words.cut(words.value(value), MAX_LENGTH)


def _list_changes(field: str, before: Any, after: Any) -> tuple[pieces.Difference, ...]:
    """Return the names that a list gained and lost, one line each; empty if they are few, or not names."""
    old, new = ([] if side is None else side for side in (before, after))
    if not all(isinstance(side, list) and all(isinstance(name, str) for name in side) for side in (old, new)):
        return ()
    added, removed = [name for name in new if name not in old], [name for name in old if name not in new]
    if len(added) + len(removed) <= MAX_NAMES:
        return ()
    return tuple(
        pieces.Difference(
            label=field,
            before="",
            after=texts.visible(f"{words.number(len(names))} {verb}: {words.listing(names)}"),
        )
        for verb, names in (("added", added), ("removed", removed))
        if names
    )


def _field_label(path: str) -> str:
    """Return the label of a field: ``not running``, ``argument cents.maximum``."""
    if path.startswith(_ARGUMENT):
        return f"argument {path.removeprefix(_ARGUMENT)}"
    # Names inside the field keep their underscores.
    field = re.split(r"[.:\[]", path, maxsplit=1)[0]
    return field.replace("_", " ") + path.removeprefix(field)


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
