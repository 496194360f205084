"""Merging of two schemas that both apply into one. (JSON Schema 2020-12)

Not all schemas can be merged: keywords that depend on their neighbors would change their meaning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolbelt.formats.json_schema import keywords

# Keywords that depend on each other: a merged schema must take a group from one side.
_GROUPS = (
    ("if", "then", "else"),
    ("contains", "minContains", "maxContains"),
    ("prefixItems", "items", "additionalItems", "unevaluatedItems"),
)
# Keywords for otherwise unlisted properties, and the neighbors that cover properties without naming them.
_CLOSING: Mapping[str, frozenset[str]] = {
    "additionalProperties": frozenset(),
    "unevaluatedProperties": frozenset(
        {*keywords.COMBINING, "$ref", "additionalProperties", "dependentSchemas", "else", "if", "then"}
    ),
}


def merge(schema: keywords.Schema, parts: Sequence[Any]) -> dict[str, Any]:
    """Return one schema for a schema and parts that also apply. Its own annotations take precedence."""
    result = dict(schema)
    # It applies to properties that no part covers, so it is added after merging the parts.
    unevaluated = result.pop("unevaluatedProperties", None)
    for subschema in map(keywords.expand_boolean, parts):
        _check_mergeable(result, subschema)
        for keyword, value in subschema.items():
            result[keyword] = _merge_keyword(keyword, result[keyword], value) if keyword in result else value
    if unevaluated is not None:
        result["unevaluatedProperties"] = _merge_keyword(
            "unevaluatedProperties", unevaluated, result.get("unevaluatedProperties", unevaluated)
        )
    return result


def _merge_keyword(keyword: str, first: Any, second: Any) -> Any:
    """Return the value of the keyword for a schema in which both values apply."""
    if keyword in keywords.ANNOTATIONS or keywords.is_equal(first, second):
        return first
    if keyword == "required":
        return [*first, *(name for name in second if name not in first)]
    if keyword in keywords.MERGEABLE:
        shared = {
            name: merge(keywords.expand_boolean(first[name]), [second[name]])
            for name in first
            if name in second
        }
        return {**second, **first, **shared}
    raise keywords.UnsupportedSchemaError(f"it has two values of {keyword} in one place")


def _check_mergeable(first: keywords.Schema, second: keywords.Schema) -> None:
    """Raise UnsupportedSchemaError if merging would change the meaning of a keyword that depends on its neighbors."""
    for group in _GROUPS:
        here, other = (
            {keyword: result[keyword] for keyword in group if keyword in result} for result in (first, second)
        )
        if here and other and not keywords.is_equal(here, other):
            raise keywords.UnsupportedSchemaError(
                f"it has two values of {', '.join(sorted({*here, *other}))} in one place"
            )
    for closed, beside in ((first, second), (second, first)):
        for keyword, hidden in _CLOSING.items():
            if closed.get(keyword, True) in (True, {}):
                continue
            if not _properties(beside) <= _properties(closed) or not hidden.isdisjoint(beside):
                raise keywords.UnsupportedSchemaError(
                    f"its {keyword} does not cover the properties beside it"
                )


def _properties(schema: keywords.Schema) -> set[tuple[str, str]]:
    return {
        (keyword, name) for keyword in ("patternProperties", "properties") for name in schema.get(keyword, ())
    }
