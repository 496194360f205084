"""The keywords of JSON Schema 2020-12 that contain schemas, and functions that walk them."""

from __future__ import annotations

import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any

Schema = Mapping[str, Any]

# Keywords that combine schemas, and all keywords that constrain an object beyond its properties.
COMBINING = ("allOf", "anyOf", "oneOf")
BEYOND_PROPERTIES = (*COMBINING, "enum", "not")

# Keywords that contain one schema, a list of schemas, or schemas by name.
SINGLE = (
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
)
LISTS = (*COMBINING, "prefixItems")
MERGEABLE = ("dependentSchemas", "patternProperties", "properties")
DEFINITIONS = ("$defs", "definitions")
MAPPINGS = (*MERGEABLE, *DEFINITIONS)
CONTAINERS = frozenset({*SINGLE, *LISTS, *MAPPINGS})
# Keywords that describe a schema without constraining values.
ANNOTATIONS = frozenset(
    {
        "$comment",
        "$schema",
        "default",
        "deprecated",
        "description",
        "examples",
        "readOnly",
        "title",
        "writeOnly",
    }
)


class UnsupportedSchemaError(Exception):
    """The schema has no equivalent form that is supported. The message describes the schema: ``it has ...``."""


def map_children(schema: Schema, change: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the schema with ``change`` applied to its direct subschemas."""
    result = dict(schema)
    for keyword, value in schema.items():
        if keyword in SINGLE and isinstance(value, Mapping | bool):
            result[keyword] = change(value)
        elif (keyword in LISTS or keyword == "items") and isinstance(value, list):
            result[keyword] = [change(child) for child in value]
        elif keyword in MAPPINGS and isinstance(value, Mapping):
            result[keyword] = {name: change(child) for name, child in value.items()}
    return result


def transform(schema: Schema, change: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    """Return the schema with ``change`` applied to every schema in it, innermost first."""

    def deep(node: Any) -> Any:
        return change(map_children(node, deep)) if isinstance(node, Mapping) else node

    result: dict[str, Any] = deep(schema)
    return result


def resolve(root: Schema, reference: str) -> Any:
    """Return the target of a reference within the schema. Raise UnsupportedSchemaError if there is none."""
    target: Any = root
    for part in parse_reference(reference):
        try:
            target = target[int(part)] if isinstance(target, list) else target[part]
        except (IndexError, KeyError, TypeError, ValueError):
            raise UnsupportedSchemaError(f"it refers to {reference}, which is not in it") from None
    return target


def parse_reference(reference: str) -> list[str]:
    """Return the names and indexes in a reference, outermost first."""
    if reference != "#" and not reference.startswith("#/"):
        raise UnsupportedSchemaError(f"it refers to {reference}, which is not a path within it")
    parts = urllib.parse.unquote(reference[1:]).split("/")[1:]
    return [part.replace("~1", "/").replace("~0", "~") for part in parts]


def types(schema: Schema, otherwise: str = "") -> list[str]:
    """Return the types that a schema allows, or ``otherwise`` if it names none."""
    stated = schema.get("type", otherwise)
    return stated if isinstance(stated, list) else [stated]


def expand_boolean(schema: Any) -> Any:
    """Return a boolean schema as an equivalent object; any other schema unchanged."""
    if isinstance(schema, bool):
        return {} if schema else {"not": {}}
    return schema


def is_equal(first: Any, second: Any) -> bool:
    """Return whether two JSON values are equal. Unlike in Python, true does not equal 1."""
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return first.keys() == second.keys() and all(is_equal(first[key], second[key]) for key in first)
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(is_equal, first, second))
    return isinstance(first, bool) == isinstance(second, bool) and bool(first == second)
