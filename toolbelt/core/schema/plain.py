"""A quick check of schemas against the meta-schema, which takes milliseconds for a large schema.

It knows the keywords that most tools use, and accepts a schema only if the meta-schema would. All others are left to
the meta-schema, which also says what is wrong with them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

# Larger schemas and longer lists are left to the meta-schema, whose steps are limited.
MAX_PARTS = MAX_LENGTH = 500

_TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})


def is_valid(schema: Mapping[str, Any]) -> bool:
    """Return whether a schema is known to be valid. False means that the meta-schema has to decide."""
    waiting: list[Any] = [schema]
    for _ in range(MAX_PARTS):
        if not waiting:
            return True
        if not _is_known(waiting.pop(), waiting):
            return False
    return False


def _is_known(subschema: Any, waiting: list[Any]) -> bool:
    """Return whether one schema's own keywords are valid; add the schemas in it to those that wait."""
    if isinstance(subschema, bool):
        return True
    if not isinstance(subschema, dict):
        return False
    for keyword, value in subschema.items():
        if keyword in _NAMING:
            if not isinstance(value, dict):
                return False
            waiting += value.values()
        elif keyword in _NESTING:
            waiting.append(value)
        elif keyword in _LISTING:
            if not isinstance(value, list) or not value:
                return False
            waiting += value
        elif (is_valid := _VALUES.get(keyword)) is None or not is_valid(value):
            return False
    return True


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= MAX_LENGTH


def _is_yes_or_no(value: Any) -> bool:
    return isinstance(value, bool)


def _is_anything(value: Any) -> bool:
    return True


def _are_names(value: Any) -> bool:
    return _is_list(value) and all(map(_is_text, value)) and len({*value}) == len(value)


def _is_type(value: Any) -> bool:
    if isinstance(value, str):
        return value in _TYPES
    return _are_names(value) and bool(value) and _TYPES.issuperset(value)


# Keywords whose value maps names to schemas, is a schema, or is a list of schemas.
_NAMING = frozenset({"$defs", "definitions", "properties"})
_NESTING = frozenset({"additionalProperties", "items", "not", "propertyNames"})
_LISTING = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_VALUES: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("$comment", "$ref", "$schema", "description", "format", "title"), _is_text),
    **dict.fromkeys(("maxItems", "maxLength", "minItems", "minLength"), _is_count),
    **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum"), _is_number),
    **dict.fromkeys(("enum", "examples"), _is_list),
    **dict.fromkeys(("deprecated", "readOnly", "uniqueItems", "writeOnly"), _is_yes_or_no),
    **dict.fromkeys(("const", "default"), _is_anything),
    "required": _are_names,
    "type": _is_type,
}
