"""The effect of a belt's import, as lines of text: before it, the same content as the dashboard's preview."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from toolbelt.control.catalog import entries
from toolbelt.control.config import belt_effects, belts
from toolbelt.core import effects, texts

MAX_VALUE_LENGTH = 200
# The number of tools that are named per agent after an import.
MAX_TOOLS = 10


def lines(assessment: belt_effects.Assessment) -> Iterator[str]:
    """Yield the effect on agents, then each entry that is created or changed, and what must be confirmed."""
    imported = assessment.imported
    yield f"{imported.created} to create, {imported.changed} to change, {imported.same} unchanged."
    if imported.differences and not assessment.consequences:
        yield "No agent gains or loses a tool."
    for consequence in assessment.consequences:
        yield from _consequence(consequence)
    for section, kind in belts.SECTIONS.items():
        differences = [difference for difference in imported.differences if difference.kind == kind]
        if differences:
            yield f"{section}:"
        for difference in differences:
            yield from _difference(difference)
    for kind in imported.ordered:
        yield f"To reorder as in the belt: {kind.replace('_', '-')}s."
    for denial in imported.to_confirm:
        yield f"To confirm, with --confirm: {denial.message}"
    yield from _reset("To be reset to defaults", imported)
    yield "Nothing was changed."


def summary(assessment: belt_effects.Assessment, imported: belts.Imported) -> Iterator[str]:
    """Yield what an import did: the number of entries, the effect on agents, and the fields that it reset."""
    yield f"{imported.created} created, {imported.changed} changed, {imported.same} unchanged."
    if imported.differences and not assessment.consequences:
        yield "No agent gained or lost a tool."
    for consequence in assessment.consequences:
        yield from _consequence(consequence, max_tools=MAX_TOOLS)
    yield from _reset("Reset to defaults", imported)
    for kind in imported.ordered:
        yield f"Reordered as in the belt: {kind.replace('_', '-')}s."


def _consequence(consequence: belt_effects.Consequence, *, max_tools: int | None = None) -> Iterator[str]:
    effect: effects.Effect = consequence.effect
    new = " (new)" if consequence.is_new else ""
    yield (
        f"{consequence.agent}{new}: {effect.tools_before} → {effect.tools_after} tools,"
        f" {effect.tokens_before} → {effect.tokens_after} tokens"
    )
    for word, keys in (("gains", effect.added), ("loses", effect.removed)):
        if keys:
            yield f"  {word} {texts.listing(keys, max_tools or len(keys))}"
    for reason in consequence.reasons:
        yield f"  Warning: {reason}"


def _reset(title: str, imported: belts.Imported) -> Iterator[str]:
    sections = {kind: section for section, kind in belts.SECTIONS.items()}
    is_first = True
    for difference in imported.differences:
        if fields := _missing(difference.before or {}, difference.after):
            if is_first:
                yield f"{title}, because the belt leaves them out:"
                is_first = False
            yield f"  {sections[difference.kind]}.{difference.name}: {', '.join(fields)}"


def _missing(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return the fields that only the first one has; for a mapping that both have, the keys of it."""
    fields = []
    for key, value in before.items():
        now = after.get(key)
        if now is None:
            fields.append(key)
        elif isinstance(value, Mapping) and isinstance(now, Mapping):
            fields += [f"{key}.{name}" for name in value if name not in now]
    return fields


def _difference(difference: belts.Difference) -> Iterator[str]:
    yield f"  {difference.name} ({'new' if difference.before is None else 'changed'})"
    before, after = entries.differences(difference.before, difference.after)
    for key, value in after.items():
        if key == entries.name_field(difference.kind):
            continue
        arrow = "" if difference.before is None else f"{_print(before.get(key))} → "
        yield f"    {key}: {arrow}{_print(value)}"


def _print(value: Any) -> str:
    if value is None:
        return "not set"
    return texts.cut(json.dumps(value, ensure_ascii=False), MAX_VALUE_LENGTH)
