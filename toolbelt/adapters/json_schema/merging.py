"""How are two schemas that both hold said as one? (JSON Schema 2020-12)

Not every two can be: a word that reads its neighbours would read others afterwards, and say something else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolbelt.adapters.json_schema import words

# Words that read each other: in one schema, they are to be one set of rules.
_TOGETHER = (
    ("if", "then", "else"),
    ("contains", "minContains", "maxContains"),
    ("prefixItems", "items", "additionalItems", "unevaluatedItems"),
)
# What judges the properties that no neighbour has judged, and the neighbours that judge some without naming them.
_CLOSING: Mapping[str, frozenset[str]] = {
    "additionalProperties": frozenset(),
    "unevaluatedProperties": frozenset(
        {*words.COMBINING, "$ref", "additionalProperties", "dependentSchemas", "else", "if", "then"}
    ),
}


def merged(schema: words.Schema, parts: Sequence[Any]) -> dict[str, Any]:
    """Say a schema and parts of it that hold, too, as one; its own remarks stand before theirs."""
    said = dict(schema)
    # It judges what no part has judged, so it is said again when all are in.
    rest = said.pop("unevaluatedProperties", None)
    for part in map(words.spelled, parts):
        _keep_apart(said, part)
        for word, value in part.items():
            said[word] = _both(word, said[word], value) if word in said else value
    if rest is not None:
        said["unevaluatedProperties"] = _both(
            "unevaluatedProperties", rest, said.get("unevaluatedProperties", rest)
        )
    return said


def _both(word: str, one: Any, other: Any) -> Any:
    """Give what says ``word`` where both hold."""
    if word in words.REMARKS or words.alike(one, other):
        return one
    if word == "required":
        return [*one, *(name for name in other if name not in one)]
    if word in words.BOTH_HOLD:
        shared = {name: merged(words.spelled(one[name]), [other[name]]) for name in one if name in other}
        return {**other, **one, **shared}
    raise words.Inexpressible(f"it has two rules of {word} in one place")


def _keep_apart(one: words.Schema, other: words.Schema) -> None:
    """Refuse to merge words that read their neighbours, where they would read others afterwards."""
    for group in _TOGETHER:
        here, there = ({word: said[word] for word in group if word in said} for said in (one, other))
        if here and there and not words.alike(here, there):
            raise words.Inexpressible(
                f"it has two rules of {', '.join(sorted({*here, *there}))} in one place"
            )
    for closed, beside in ((one, other), (other, one)):
        for word, hidden in _CLOSING.items():
            if closed.get(word, True) in (True, {}):
                continue
            if not _properties(beside) <= _properties(closed) or not hidden.isdisjoint(beside):
                raise words.Inexpressible(f"it has {word} that say nothing of the properties beside them")


def _properties(schema: words.Schema) -> set[tuple[str, str]]:
    return {(word, name) for word in ("patternProperties", "properties") for name in schema.get(word, ())}
