"""How else can this schema be said, without a change of its meaning? (JSON Schema 2020-12)

Each function gives a form that means the same, or raises words.Inexpressible. Schemas come from upstream servers and
are hostile until proven otherwise: what is written out is bounded.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from toolbelt.adapters.json_schema import merging, words
from toolbelt.adapters.json_schema.words import Schema

# How long a schema may become when its references are written out; the longest real ones come to some ten thousand.
MOST_CHARACTERS = 500_000


def rooted(schema: Schema, refused: Collection[str]) -> dict[str, Any]:
    """Say the schema as an object with properties, with no reference and none of the ``refused`` words at its top.

    A reference, an ``allOf`` and a choice of one are merged into what stands beside them. Arguments are always an
    object, so ``type`` and ``properties`` can be said where they are missing. Raises words.Inexpressible.
    """
    said = _unwrapped(schema, schema, (), _Room())
    if said.keys() & {*refused}:
        raise words.Inexpressible(f"it has {' and '.join(sorted(said.keys() & {*refused}))} at its top")
    if "object" not in words.types(said, "object"):
        raise words.Inexpressible("it is not of an object")
    said = {**said, "type": "object", "properties": said.get("properties", {})}
    if schema.keys() - said.keys():
        # What was merged is no longer where it was, and something may refer to it there.
        words.changed(said, lambda node: _resolving(said, node))
    return said


def with_items(schema: Schema) -> dict[str, Any]:
    """Say what the items of each array are (anything, where nothing is said), and no schema as a mere true or false."""

    def change(said: dict[str, Any]) -> dict[str, Any]:
        for word in words.ONE:
            if word in said and not word.startswith(("additional", "unevaluated")):
                said[word] = words.spelled(said[word])
        for word in words.MANY:
            if word in said:
                said[word] = [words.spelled(one) for one in said[word]]
        for word in words.NAMED:
            if word in said:
                said[word] = {name: words.spelled(one) for name, one in said[word].items()}
        if "array" in words.types(said):
            said.setdefault("items", {})
        return said

    return words.changed(schema, change)


def with_enums(schema: Schema) -> dict[str, Any]:
    """Say each ``const`` as an ``enum`` of one. Raises words.Inexpressible."""

    def change(said: dict[str, Any]) -> dict[str, Any]:
        if "const" not in said:
            return said
        value = said.pop("const")
        if not any(words.alike(value, one) for one in said.get("enum", [value])):
            raise words.Inexpressible("it has a const that is not in the enum beside it")
        return {**said, "enum": [value]}

    return words.changed(schema, change)


def inlined(schema: Schema) -> dict[str, Any]:
    """Write out what references lead to. Only what is part of itself stays referred to, with its definition.

    Raises words.Inexpressible.
    """
    top = {word: value for word, value in schema.items() if word not in words.DEFINITIONS}
    text = json.dumps(top)
    if '"$ref"' not in text and '"$dynamicRef"' not in text:
        return top
    room = _Room()
    recursive: dict[str, None] = {}

    def expand(node: Any, within: tuple[str, ...]) -> Any:
        room.take(words.spelled(node))
        if not isinstance(node, Mapping):
            return node
        if "$dynamicRef" in node or ("$id" in node and node is not top):
            raise words.Inexpressible(
                "it has a reference that depends on where it is read ($dynamicRef, $id)"
            )
        said = words.mapped(node, lambda one: expand(one, within))
        reference = said.pop("$ref", None)
        if reference is None:
            return said
        if reference != "#" and reference not in within:
            return merging.merged(said, [expand(words.at(schema, reference), (*within, reference))])
        if said.keys() - words.REMARKS:
            rules = ", ".join(sorted(said.keys() - words.REMARKS))
            raise words.Inexpressible(f"it has {rules} beside a reference to what it is part of")
        recursive[reference] = None
        return {
            "$ref": reference,
            **{word: said[word] for word in ("default", "description") if word in said},
        }

    whole: dict[str, Any] = expand(top, ())
    kept: list[str] = []
    while len(kept) < len(recursive):
        reference = list(recursive)[len(kept)]
        kept.append(reference)
        match words.path(reference):
            case [("$defs" | "definitions") as place, name]:
                whole.setdefault(place, {})[name] = expand(words.at(schema, reference), (reference,))
    for reference in kept:
        words.at(whole, reference)
    return whole


def _unwrapped(schema: Schema, root: Schema, seen: tuple[str, ...], room: _Room) -> dict[str, Any]:
    """Merge what the top refers to, all of its ``allOf``, and a choice of one, into the top."""
    room.take(schema)
    said = dict(schema)
    parts: list[Any] = []
    reference = said.pop("$ref", None)
    if reference is not None:
        if reference in seen or reference == "#":
            raise words.Inexpressible(f"it refers to {reference}, which leads to itself")
        seen = (*seen, reference)
        parts.append(words.at(root, reference))
    parts += said.pop("allOf", ())
    for word in ("anyOf", "oneOf"):
        if len(said.get(word, ())) == 1:
            parts += said.pop(word)
    return merging.merged(said, [_unwrapped(words.spelled(part), root, seen, room) for part in parts])


def _resolving(root: Schema, node: dict[str, Any]) -> dict[str, Any]:
    """Give the schema back if what it refers to is there."""
    if "$ref" in node:
        words.at(root, node["$ref"])
    return node


class _Room:
    """How much may still be written out: what refers to itself ten times over would fill any memory."""

    def __init__(self) -> None:
        self._left = MOST_CHARACTERS

    def take(self, schema: Schema) -> None:
        """Take the room of a schema without the schemas in it, or raise words.Inexpressible."""
        own = {word: value for word, value in schema.items() if word not in words.HOLDING}
        named = sum(len(name) for word in words.NAMED for name in schema.get(word, ()))
        self._left -= named + len(json.dumps(own))
        if self._left < 0:
            raise words.Inexpressible(f"it has more than {MOST_CHARACTERS} characters when it is written out")
