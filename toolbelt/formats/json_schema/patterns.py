"""Patterns that a provider's engine may not take: they are left out, and described instead.

A provider refuses all tools of a request for one pattern that its engine does not have. OpenAI checks patterns with
Python's ``re``, as reported ("is not a 'regex'"), and so do others that imitate a provider's form. Anthropic reads them
as ECMA-262. The others do not document it. So a pattern is sent if both engines take it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any

from toolbelt.formats.json_schema import keywords

# Compiling longer ones may take Python long.
_MAX_LENGTH = 500
# How much of a pattern is said.
_MAX_SAID = 200
# What only Python has, or only some of its versions; what ignores case, which is expanded when it is compiled; what
# Python warns of, because it may once be a set operation; and a literal in slashes, which matches nothing.
_FOREIGN = re.compile(
    r"\(\?[a-zA-Z]*i|\(\?[P>#(]|[*+?}]\+|\\[AZ]|\[\^?\[|\[[^\]]*(?:--|&&|~~|\|\|)|^/(?:\^.*|.*\$)/[a-zA-Z]*$",
    re.DOTALL,
)
# What is left out if the schemas in a keyword accept more.
_COUNTED = {"not": ("not",), "if": ("if", "then", "else"), "contains": ("maxContains",), "oneOf": ("oneOf",)}


@functools.lru_cache(maxsize=512)
def is_portable(pattern: str) -> bool:
    """Return whether every provider takes the pattern."""
    if len(pattern) > _MAX_LENGTH or _FOREIGN.search(pattern):
        return False
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError, FutureWarning):
        return False
    return True


def of(schema: keywords.Schema) -> list[str]:
    """Return the patterns in a schema that are not sent, each once."""
    found: dict[str, None] = {}

    def collect(node: dict[str, Any]) -> dict[str, Any]:
        found.update(dict.fromkeys(_foreign(node)))
        return node

    keywords.transform(schema, collect)
    return list(found)


def without(schema: keywords.Schema) -> dict[str, Any]:
    """Return the schema without the patterns that are not sent, each of which its description has instead."""
    if not of(schema):
        return dict(schema)
    loosened: dict[str, Any] = _loosened(schema)
    # What a name matched may now count as unevaluated, also further out.
    return keywords.transform(loosened, _open)


def _open(schema: dict[str, Any]) -> dict[str, Any]:
    schema.pop("unevaluatedProperties", None)
    return schema


def _foreign(schema: keywords.Schema) -> list[str]:
    patterns = [schema["pattern"]] if isinstance(schema.get("pattern"), str) else []
    names = schema.get("patternProperties")
    patterns += names if isinstance(names, Mapping) else ()
    return [pattern for pattern in patterns if not is_portable(pattern)]


def _loosened(schema: Any) -> Any:
    """Return a schema that accepts more. A part that does so would accept less where it is negated or counted."""
    if not isinstance(schema, Mapping):
        return schema
    result = keywords.map_children(schema, _loosened)
    for keyword, dependent in _COUNTED.items():
        if keyword in result and result[keyword] != schema[keyword]:
            if keyword == "oneOf":
                result.setdefault("anyOf", result["oneOf"])
            for name in dependent:
                result.pop(name, None)
    foreign = _foreign(schema)
    pattern, given = schema.get("pattern"), schema.get("description")
    if pattern in foreign:
        del result["pattern"]
        said = f"Pattern: {cut(schema['pattern'])}"
        result["description"] = f"{given}\n{said}" if isinstance(given, str) and given.strip() else said
    if names := [name for name in result.get("patternProperties", ()) if name in foreign]:
        result["patternProperties"] = {
            name: child for name, child in result["patternProperties"].items() if name not in names
        }
        result.pop("additionalProperties", None)
    return result


def cut(pattern: str) -> str:
    """Return a pattern as it is said, cut if it is long."""
    return pattern if len(pattern) <= _MAX_SAID else pattern[: _MAX_SAID - 1] + "…"
