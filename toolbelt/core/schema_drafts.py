"""Conversion of schemas from older drafts to JSON Schema 2020-12.

Up to 2019-09, ``items`` could be a list of schemas, one for each position, which 2020-12 calls ``prefixItems``. In
draft 4, ``exclusiveMinimum`` was a boolean next to ``minimum``. 2020-12 does not define either form, so unless a schema
declares 2020-12, they keep their older meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# A schema whose ``$schema`` contains this is returned as it is.
_CURRENT = "2020-12"
# Keywords whose value maps names to schemas, and those whose value is a schema or a list of schemas.
NAMING = frozenset(
    {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)
NESTING = frozenset(
    "additionalItems additionalProperties allOf anyOf contains contentSchema else if items not oneOf"  # noqa: SIM905
    " prefixItems propertyNames then unevaluatedItems unevaluatedProperties".split()
)
_BOUNDS = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}


def current(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema in the form of 2020-12; one that declares 2020-12 is unchanged."""
    if _CURRENT in str(schema.get("$schema", "")):
        return dict(schema)
    return {key: _part(key, value) for key, value in _rewritten(schema).items()}


def _part(key: str, value: Any) -> Any:
    if key in NAMING and isinstance(value, Mapping):
        return {name: _schema(inner) for name, inner in value.items()}
    if key in NESTING:
        return [_schema(inner) for inner in value] if isinstance(value, list) else _schema(value)
    return value


def _schema(value: Any) -> Any:
    return current(value) if isinstance(value, Mapping) else value


def _rewritten(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return one schema without keywords that have a different meaning now; its parts are unchanged."""
    rewritten = dict(schema)
    if isinstance(schema.get("items"), list) and "prefixItems" not in schema:
        rewritten["prefixItems"] = rewritten.pop("items")
        if "additionalItems" in schema:
            rewritten["items"] = rewritten.pop("additionalItems")
        if not rewritten["prefixItems"]:
            # 2020-12 requires at least one position.
            del rewritten["prefixItems"]
    for exclusive, bound in _BOUNDS.items():
        if isinstance(is_exclusive := schema.get(exclusive), bool):
            del rewritten[exclusive]
            if is_exclusive and bound in rewritten:
                rewritten[exclusive] = rewritten.pop(bound)
    return rewritten
