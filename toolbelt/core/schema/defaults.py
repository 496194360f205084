"""Default values for properties that a schema requires.

In JSON Schema, a default is only an annotation. Yet generators (such as zod's) list every property with a default as
required, and the servers behind them accept calls without it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Defaults:
    """The defaults of one object, by property: ``values`` for missing properties, ``inner`` for nested objects."""

    values: Mapping[str, Any] = field(default_factory=dict)
    inner: Mapping[str, Defaults] = field(default_factory=dict)


def of(schema: Any, depth: int) -> Defaults | None:
    """Return the defaults of objects that the schema describes, up to ``depth`` levels; None if there are none.

    Follows only ``properties``, so each part of the schema is visited once.
    """
    if depth == 0 or not isinstance(schema, Mapping) or not isinstance(schema.get("properties"), Mapping):
        return None
    required = schema.get("required")
    names = {name for name in required if isinstance(name, str)} if isinstance(required, list) else set()
    properties = schema["properties"]
    values = {
        name: property_["default"]
        for name, property_ in properties.items()
        if name in names and isinstance(property_, Mapping) and "default" in property_
    }
    inner = {
        name: nested
        for name, property_ in properties.items()
        if (nested := of(property_, depth - 1)) is not None
    }
    return Defaults(values, inner) if values or inner else None


def fill(defaults: Defaults, value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the object with missing properties filled in. Existing values are unchanged, even if they do not fit."""
    filled = {**copy.deepcopy({k: v for k, v in defaults.values.items() if k not in value}), **value}
    for name, inner in defaults.inner.items():
        if isinstance(filled.get(name), Mapping):
            filled[name] = fill(inner, filled[name])
    return filled
