"""Where are the schemas within a schema, and what leads from one to another? (JSON Schema 2020-12)"""

from __future__ import annotations

import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any

Schema = Mapping[str, Any]

# What stands for a choice among schemas, and all that can say more of an object than its properties do.
COMBINING = ("allOf", "anyOf", "oneOf")
BEYOND_PROPERTIES = (*COMBINING, "enum", "not")

# The words of JSON Schema that hold one schema, a list of them, or some by name.
ONE = (
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
MANY = (*COMBINING, "prefixItems")
BOTH_HOLD = ("dependentSchemas", "patternProperties", "properties")
DEFINITIONS = ("$defs", "definitions")
NAMED = (*BOTH_HOLD, *DEFINITIONS)
HOLDING = frozenset({*ONE, *MANY, *NAMED})
# What says something about a schema, and nothing about what fits it.
REMARKS = frozenset(
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


class Inexpressible(Exception):
    """There is no form that means the same and is taken. The message says what is so of the schema: ``it has ...``."""


def mapped(schema: Schema, change: Callable[[Any], Any]) -> dict[str, Any]:
    """Change the schemas directly within this one, and no value that only looks like one."""
    said = dict(schema)
    for word, value in schema.items():
        if word in ONE and isinstance(value, Mapping | bool):
            said[word] = change(value)
        elif (word in MANY or word == "items") and isinstance(value, list):
            said[word] = [change(one) for one in value]
        elif word in NAMED and isinstance(value, Mapping):
            said[word] = {name: change(one) for name, one in value.items()}
    return said


def changed(schema: Schema, change: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    """Change a schema, the innermost parts first."""

    def deep(node: Any) -> Any:
        return change(mapped(node, deep)) if isinstance(node, Mapping) else node

    said: dict[str, Any] = deep(schema)
    return said


def at(root: Schema, reference: str) -> Any:
    """Find what a reference within the schema leads to. Raises Inexpressible."""
    found: Any = root
    for part in path(reference):
        try:
            found = found[int(part)] if isinstance(found, list) else found[part]
        except (IndexError, KeyError, TypeError, ValueError):
            raise Inexpressible(f"it refers to {reference}, which is not in it") from None
    return found


def path(reference: str) -> list[str]:
    """Take a reference apart into names and numbers, from the outside in."""
    if reference != "#" and not reference.startswith("#/"):
        raise Inexpressible(f"it refers to {reference}, which is no path within it")
    parts = urllib.parse.unquote(reference[1:]).split("/")[1:]
    return [part.replace("~1", "/").replace("~0", "~") for part in parts]


def types(schema: Schema, otherwise: str = "") -> list[str]:
    """Name the types that a schema takes, be it one or several; ``otherwise`` where it says none."""
    named = schema.get("type", otherwise)
    return named if isinstance(named, list) else [named]


def spelled(schema: Any) -> Any:
    """Say true as the schema that everything fits, and false as the one that nothing does."""
    if isinstance(schema, bool):
        return {} if schema else {"not": {}}
    return schema


def alike(one: Any, other: Any) -> bool:
    """Say whether two values are the same JSON: to Python, true is 1."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)
