"""The combined constraints of schemas that all apply to one value: its types, values, bounds, properties and items."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolbelt.core.schema import forms

Parts = Sequence[Mapping[str, Any]]
# Schemas that all apply to one value, as they are in the document: mappings, booleans, or anything else.
Schemas = tuple[Any, ...]
TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
# Types with few values, which are listed instead of described by bounds.
_FEW: Mapping[str, Mapping[str, Any]] = {"boolean": {"false": False, "true": True}, "null": {"null": None}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The strictest upper or lower bound of a measure. ``keyword`` is the one that states it, or ``enum``."""

    keyword: str
    value: float
    is_exclusive: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """Something of a value that schemas bound, such as the length of a text.

    ``keywords`` are the inclusive and the exclusive one. ``beyond`` says what a value may be that is beyond the bound,
    which counts ``units`` (one, several).
    """

    type: str
    is_upper: bool
    keywords: tuple[str, ...]
    beyond: str
    units: tuple[str, str] = ("", "")
    of: Callable[[Any], float] = len


def _itself(value: Any) -> float:
    number: float = value
    return number


_CHARACTERS, _ITEMS = ("character", "characters"), ("item", "items")
_PROPERTIES = ("property", "properties")
MEASURES = (
    Measure(
        type="number",
        is_upper=False,
        keywords=("minimum", "exclusiveMinimum"),
        beyond="be less than {}",
        of=_itself,
    ),
    Measure(
        type="number",
        is_upper=True,
        keywords=("maximum", "exclusiveMaximum"),
        beyond="be more than {}",
        of=_itself,
    ),
    Measure(type="string", is_upper=False, keywords=("minLength",), beyond="have fewer than {}", units=_CHARACTERS),
    Measure(type="string", is_upper=True, keywords=("maxLength",), beyond="have more than {}", units=_CHARACTERS),
    Measure(type="array", is_upper=False, keywords=("minItems",), beyond="have fewer than {}", units=_ITEMS),
    Measure(type="array", is_upper=True, keywords=("maxItems",), beyond="have more than {}", units=_ITEMS),
    Measure(type="object", is_upper=False, keywords=("minProperties",), beyond="have fewer than {}", units=_PROPERTIES),
    Measure(type="object", is_upper=True, keywords=("maxProperties",), beyond="have more than {}", units=_PROPERTIES),
)  # fmt: skip


def types(parts: Parts) -> frozenset[str]:
    """Return the types that a value may have; a number may be an integer, too."""
    allowed = _stated_types(parts)
    if (listed := _listed(parts)) is None:
        return allowed
    return allowed & {_type_of(value) for value in listed.values()}


def _stated_types(parts: Parts) -> frozenset[str]:
    allowed = TYPES
    for part in parts:
        stated = part.get("type")
        listed = [stated] if isinstance(stated, str) else stated
        if isinstance(listed, list):
            allowed &= {str(name) for name in listed} | ({"integer"} if "number" in listed else set())
    return allowed


def values(parts: Parts) -> dict[str, Any] | None:
    """Return the values that are allowed, by their canonical JSON; None if they are not listed."""
    listed = _listed(parts)
    if listed is None and (of_types := _stated_types(parts)) <= _FEW.keys():
        return {text: value for name in sorted(of_types) for text, value in _FEW[name].items()}
    return listed


def _listed(parts: Parts) -> dict[str, Any] | None:
    allowed: dict[str, Any] | None = None
    for part in parts:
        listed = [part["const"]] if "const" in part else part.get("enum")
        if isinstance(listed, list):
            texts = {forms.comparable(value): value for value in listed}
            allowed = texts if allowed is None else {k: v for k, v in texts.items() if k in allowed}
    return allowed


def _type_of(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "integer" if value.is_integer() else "number"
        case str():
            return "string"
        case list():
            return "array"
    return "object"


def bound(parts: Parts, measure: Measure, listed: Mapping[str, Any] | None) -> Bound | None:
    """Return the strictest bound of a measure; None if there is none. ``listed`` are the parts' :func:`values`."""
    bounds = [candidate for candidate in _stated(parts, measure) if abs(candidate.value) != math.inf]
    measured = (
        [] if listed is None else [measure.of(value) for value in listed.values() if _has(value, measure)]
    )
    if measured:
        bounds.append(Bound(keyword="enum", value=max(measured) if measure.is_upper else min(measured)))
    if not bounds:
        return None
    return min(bounds, key=lambda candidate: _rank(candidate, measure))


def is_looser(now: Bound | None, was: Bound, measure: Measure) -> bool:
    """Return whether a bound allows more than it did."""
    if now is None:
        # A length is never less than zero.
        return measure.is_upper or measure.type == "number" or was.value > 0
    return _rank(now, measure) > _rank(was, measure)


def describe_beyond(was: Bound, measure: Measure) -> str:
    """Return a phrase for the values that are beyond the bound."""
    number = forms.comparable(was.value)
    if was.is_exclusive:
        return f"be {number} or {'more' if measure.is_upper else 'less'}"
    return measure.beyond.format(f"{number} {measure.units[number != '1']}".rstrip())


def properties(parts: Parts) -> dict[str, Schemas]:
    """Return the schemas of each property that is listed."""
    schemas_by_name: dict[str, Schemas] = {}
    for part in parts:
        properties = part.get("properties")
        for name, schema in properties.items() if isinstance(properties, Mapping) else ():
            schemas_by_name[name] = (*schemas_by_name.get(name, ()), schema)
    return schemas_by_name


def required(parts: Parts) -> list[str]:
    """Return the names of the properties that must be given."""
    lists = [part["required"] for part in parts if isinstance(part.get("required"), list)]
    return [name for name in itertools.chain.from_iterable(lists) if isinstance(name, str)]


def is_closed(parts: Parts) -> bool:
    """Return whether properties that are not listed are refused."""
    return any(
        part.get(word) is False
        for part in parts
        for word in ("additionalProperties", "unevaluatedProperties")
    )


def name_patterns(parts: Parts) -> set[str]:
    """Return the patterns of names that have a schema of their own."""
    return {
        pattern
        for part in parts
        if isinstance(part.get("patternProperties"), Mapping)
        for pattern in part["patternProperties"]
    }


def may_contain_none(parts: Parts) -> bool:
    """Return whether ``contains`` asks for nothing."""
    return any(part.get("minContains") == 0 for part in parts)


def additional(parts: Parts) -> Schemas:
    """Return the schemas of properties that are not listed."""
    schemas = [part.get("additionalProperties") for part in parts]
    return tuple(schema for schema in schemas if isinstance(schema, Mapping))


def item(parts: Parts, position: int | None) -> Schemas:
    """Return the schemas of an item; without a position, those of the items after all that have one of their own."""
    item_schemas = []
    for part in parts:
        prefix = part.get("prefixItems")
        if position is not None and isinstance(prefix, list) and position < len(prefix):
            item_schemas.append(prefix[position])
        elif "items" in part:
            item_schemas.append(part["items"])
    return tuple(item_schemas)


def numbers(parts: Parts, keyword: str) -> list[int | float]:
    """Return the positive numbers that a keyword states."""
    values = [part[keyword] for part in parts if keyword in part]
    return [number for number in values if isinstance(number, int | float) and number > 0]


def _rank(bound_: Bound, measure: Measure) -> tuple[float, int]:
    """Return a pair that is greater, the more the bound allows."""
    return (bound_.value if measure.is_upper else -bound_.value), not bound_.is_exclusive


def _stated(parts: Parts, measure: Measure) -> Iterator[Bound]:
    is_whole = measure.type == "number" and "number" not in _stated_types(parts)
    for part in parts:
        for keyword in measure.keywords:
            value = part.get(keyword)
            if isinstance(value, bool) or not isinstance(value, int | float):
                continue
            is_exclusive = keyword != measure.keywords[0]
            if is_whole and is_exclusive and value == value // 1:
                # Less than 11 and at most 10 are the same for integers.
                value, is_exclusive = int(value) + (-1 if measure.is_upper else 1), False
            yield Bound(keyword=keyword, value=value, is_exclusive=is_exclusive)


def _has(value: Any, measure: Measure) -> bool:
    match measure.type:
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "string":
            return isinstance(value, str)
        case "array":
            return isinstance(value, list)
    return isinstance(value, Mapping)
