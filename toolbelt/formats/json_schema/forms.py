"""Equivalent forms of schemas that providers accept. (JSON Schema 2020-12)

Each function returns a schema with the same meaning, or raises keywords.UnsupportedSchemaError. Schemas come from
upstream servers and may be hostile, so the size of the result is limited.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from toolbelt.formats.json_schema import keywords, merging
from toolbelt.formats.json_schema.keywords import Schema

# The maximum size of a schema with its references inlined. The largest real schemas have about 10,000 characters.
MAX_CHARACTERS = 500_000


def to_object(schema: Schema, refused: Collection[str]) -> dict[str, Any]:
    """Return the schema as an object with properties, without references or ``refused`` keywords at its top level.

    References, ``allOf`` and choices with a single option are merged into the top level. Arguments are always an
    object, so a missing ``type`` and ``properties`` can be added. Raise keywords.UnsupportedSchemaError.
    """
    result = _unwrap(schema, schema, (), _SizeLimit())
    if result.keys() & {*refused}:
        raise keywords.UnsupportedSchemaError(
            f"it has {' and '.join(sorted(result.keys() & {*refused}))} at its top level"
        )
    if "object" not in keywords.types(result, "object"):
        raise keywords.UnsupportedSchemaError("it does not describe an object")
    result = {**result, "type": "object", "properties": result.get("properties", {})}
    if schema.keys() - result.keys():
        # Merged parts have moved, so references to them may no longer resolve.
        keywords.transform(result, lambda node: _check_reference(result, node))
    return result


def with_items(schema: Schema) -> dict[str, Any]:
    """Return the schema with explicit ``items`` in each array (anything by default), and without boolean schemas."""

    def change(result: dict[str, Any]) -> dict[str, Any]:
        for keyword in keywords.SINGLE:
            if keyword in result and not keyword.startswith(("additional", "unevaluated")):
                result[keyword] = keywords.expand_boolean(result[keyword])
        for keyword in keywords.LISTS:
            if keyword in result:
                result[keyword] = [keywords.expand_boolean(child) for child in result[keyword]]
        for keyword in keywords.MAPPINGS:
            if keyword in result:
                result[keyword] = {
                    name: keywords.expand_boolean(child) for name, child in result[keyword].items()
                }
        if "array" in keywords.types(result):
            result.setdefault("items", {})
        return result

    return keywords.transform(schema, change)


def with_enums(schema: Schema) -> dict[str, Any]:
    """Return the schema with each ``const`` as an ``enum`` of one value. Raise keywords.UnsupportedSchemaError."""

    def change(result: dict[str, Any]) -> dict[str, Any]:
        if "const" not in result:
            return result
        value = result.pop("const")
        if not any(keywords.is_equal(value, allowed) for allowed in result.get("enum", [value])):
            raise keywords.UnsupportedSchemaError("it has a const that is not in the enum beside it")
        return {**result, "enum": [value]}

    return keywords.transform(schema, change)


def inline_references(schema: Schema) -> dict[str, Any]:
    """Return the schema with references replaced by their targets. Recursive ones stay, with their definitions.

    Raise keywords.UnsupportedSchemaError.
    """
    top = {keyword: value for keyword, value in schema.items() if keyword not in keywords.DEFINITIONS}
    text = json.dumps(top)
    if '"$ref"' not in text and '"$dynamicRef"' not in text:
        return top
    size_limit = _SizeLimit()
    recursive: dict[str, None] = {}

    def expand(node: Any, within: tuple[str, ...]) -> Any:
        size_limit.add(keywords.expand_boolean(node))
        if not isinstance(node, Mapping):
            return node
        if "$dynamicRef" in node or ("$id" in node and node is not top):
            raise keywords.UnsupportedSchemaError(
                "it has a reference whose target depends on its context ($dynamicRef, $id)"
            )
        result = keywords.map_children(node, lambda child: expand(child, within))
        reference = result.pop("$ref", None)
        if reference is None:
            return result
        if reference != "#" and reference not in within:
            return merging.merge(result, [expand(keywords.resolve(schema, reference), (*within, reference))])
        if result.keys() - keywords.ANNOTATIONS:
            rules = ", ".join(sorted(result.keys() - keywords.ANNOTATIONS))
            raise keywords.UnsupportedSchemaError(f"it has {rules} beside a recursive reference")
        recursive[reference] = None
        return {
            "$ref": reference,
            **{keyword: result[keyword] for keyword in ("default", "description") if keyword in result},
        }

    whole: dict[str, Any] = expand(top, ())
    expanded: list[str] = []
    while len(expanded) < len(recursive):
        reference = list(recursive)[len(expanded)]
        expanded.append(reference)
        match keywords.parse_reference(reference):
            case [("$defs" | "definitions") as section, name]:
                whole.setdefault(section, {})[name] = expand(
                    keywords.resolve(schema, reference), (reference,)
                )
    for reference in expanded:
        keywords.resolve(whole, reference)
    return whole


def _unwrap(
    schema: Schema, root: Schema, references: tuple[str, ...], size_limit: _SizeLimit
) -> dict[str, Any]:
    """Return the schema with its reference, ``allOf`` and single-option choices merged into the top level."""
    size_limit.add(schema)
    result = dict(schema)
    parts: list[Any] = []
    reference = result.pop("$ref", None)
    if reference is not None:
        if reference in references or reference == "#":
            raise keywords.UnsupportedSchemaError(f"it refers to {reference}, which refers to itself")
        references = (*references, reference)
        parts.append(keywords.resolve(root, reference))
    parts += result.pop("allOf", ())
    for keyword in ("anyOf", "oneOf"):
        if len(result.get(keyword, ())) == 1:
            parts += result.pop(keyword)
    return merging.merge(
        result,
        [_unwrap(keywords.expand_boolean(subschema), root, references, size_limit) for subschema in parts],
    )


def _check_reference(root: Schema, node: dict[str, Any]) -> dict[str, Any]:
    """Return the schema unchanged if its reference resolves."""
    if "$ref" in node:
        keywords.resolve(root, node["$ref"])
    return node


class _SizeLimit:
    """The size that is left for inlining: a few references can multiply a schema beyond any memory."""

    def __init__(self) -> None:
        self._left = MAX_CHARACTERS

    def add(self, schema: Schema) -> None:
        """Take the size_limit of a schema without the schemas in it, or raise keywords.UnsupportedSchemaError."""
        own_keywords = {
            keyword: value for keyword, value in schema.items() if keyword not in keywords.CONTAINERS
        }
        names_size = sum(len(name) for keyword in keywords.MAPPINGS for name in schema.get(keyword, ()))
        self._left -= names_size + len(json.dumps(own_keywords))
        if self._left < 0:
            raise keywords.UnsupportedSchemaError(
                f"it has more than {MAX_CHARACTERS} characters with its references inlined"
            )
