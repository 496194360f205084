"""Values for properties that a schema both requires and has a default for.

JSON Schema knows no such thing: a default is for reading. Yet generators (zod's, for one) list every property with a
default among the required ones, and the servers behind them take calls without it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Defaults:
    """What one object is filled with, by property: ``values`` where it is absent, ``inner`` where it is there."""

    values: Mapping[str, Any] = field(default_factory=dict)
    inner: Mapping[str, Defaults] = field(default_factory=dict)


def of(schema: Any, depth: int) -> Defaults | None:
    """Return what an object described by the schema is filled with, to so many levels; None: nothing.

    Follows ``properties`` alone, so each part of the schema is passed once.
    """
    if depth == 0 or not isinstance(schema, Mapping) or not isinstance(schema.get("properties"), Mapping):
        return None
    required = schema.get("required")
    names = {name for name in required if isinstance(name, str)} if isinstance(required, list) else set()
    properties = schema["properties"]
    values = {
        name: one["default"]
        for name, one in properties.items()
        if name in names and isinstance(one, Mapping) and "default" in one
    }
    inner = {name: found for name, one in properties.items() if (found := of(one, depth - 1)) is not None}
    return Defaults(values, inner) if values or inner else None


def fill(defaults: Defaults, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the object with what it lacks. What is given stays as it is, also where it does not fit."""
    filled = {**copy.deepcopy({k: v for k, v in defaults.values.items() if k not in given}), **given}
    for name, inner in defaults.inner.items():
        if isinstance(filled.get(name), Mapping):
            filled[name] = fill(inner, filled[name])
    return filled
