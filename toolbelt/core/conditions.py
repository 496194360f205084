"""Conditions on the arguments of a call, for gate rules (docs/semantics.md: Gate rules).

A condition is a JSON Schema, or its short form: a mapping of arguments to schemas, all of which must be given and fit.
Only keywords are allowed that are always enforced and that never make a condition narrower by accident: a misspelled
keyword, or a pattern that cannot be run, would be a rule that never applies.

A keyword says nothing about values of another type: ``maximum`` fits every text. Whether a condition holds for those is
unknown, so that it is read in two ways: what certainly fits, and what possibly fits. A rule that denies takes the one
that denies more.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from toolbelt.core import schema, schema_drafts
from toolbelt.core.schema import validator

MAX_BYTES = 8_000
# How many arguments a condition may name.
MAX_FIELDS = 10
# The steps for all rules of one call (about 10 ms), and on an event loop, where everything else waits.
STEPS = 2_000
QUICK_STEPS = schema.QUICK_STEPS
# How many values of the arguments are looked at for one step.
_VALUES_PER_STEP = 16

_MISSING = object()

TooComplexError = schema.TooComplexError

# The type of value that a keyword is about.
_ABOUT: Mapping[str, str] = {
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), "number"),
    **dict.fromkeys(("minLength", "maxLength", "pattern"), "string"),
    **dict.fromkeys(("items", "prefixItems", "contains", "minItems", "maxItems", "uniqueItems"), "array"),
    **dict.fromkeys(("properties", "patternProperties", "additionalProperties", "propertyNames"), "object"),
    **dict.fromkeys(("required", "minProperties", "maxProperties"), "object"),
}
_NAMING = frozenset({"properties", "patternProperties"})
_NESTING = frozenset({"items", "contains", "additionalProperties", "propertyNames"})
_LISTING = frozenset({"allOf", "anyOf", "prefixItems"})
# What a condition on all arguments together may have, if it depends only on those that it names.
_BY_NAME = frozenset(
    {*("type", "properties", "required", "allOf", "anyOf", "not"), *("title", "description", "$comment")}
)
_KEYWORDS = frozenset(
    {*_ABOUT, *_LISTING, "type", "const", "enum", "not", "title", "description", "$comment"}
)
# A mapping with one of these is a schema, also if all of its values could be schemas of arguments.
_OF_SCHEMAS = frozenset({*_NAMING, "additionalProperties", "propertyNames", "not", "const"})


def problem(written: Mapping[str, Any]) -> str | None:
    """Return why this is no condition, or None."""
    if not written:
        return "it is empty, so it would always hold: name an argument, or leave it out"
    if len(schema.canonical(written).encode(errors="replace")) > MAX_BYTES:
        return f"it is longer than {MAX_BYTES} bytes"
    expanded_ = expanded(written)
    # Before anything walks through it.
    if reason := schema.problem(expanded_):
        return reason
    for keyword in _keywords(expanded_):
        if keyword not in _KEYWORDS:
            return (
                f"{validator.short(repr(keyword))} is not a keyword that conditions have{_instead(keyword)}"
            )
    if unenforced := schema.unenforced_patterns(expanded_):
        pattern = validator.short(repr(unenforced[0]))
        return f"the pattern {pattern} cannot be run: write it without lookarounds and back-references"
    if len(fields(written)) > MAX_FIELDS:
        return f"it names more than {MAX_FIELDS} arguments"
    return None


def _instead(keyword: str) -> str:
    match keyword:
        case "format":
            return ": it would not be checked. Write a pattern"
        case "oneOf":
            return ": write anyOf"
        case "if" | "then" | "else":
            return ": write anyOf and not"
        case "$ref" | "$defs" | "definitions":
            return ": write the schema in its place"
    return f": it has {', '.join(sorted(_KEYWORDS))}"


def expanded(written: Mapping[str, Any]) -> dict[str, Any]:
    """Return a condition as a JSON Schema: in the short form, every argument that it names must be given."""
    if _is_short(written):
        written = {"type": "object", "properties": dict(written), "required": list(written)}
    return dict(schema_drafts.current(written))


def _is_short(written: Mapping[str, Any]) -> bool:
    return _OF_SCHEMAS.isdisjoint(written) and all(
        isinstance(part, Mapping | bool) for part in written.values()
    )


def fields(written: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the arguments that a condition names, in order."""
    names: dict[str, None] = {}
    waiting: list[Any] = [expanded(written)]
    while waiting:
        part = waiting.pop(0)
        if isinstance(part, Mapping):
            names.update(dict.fromkeys(part.get("properties", ())))
            names.update(dict.fromkeys(part.get("required", ())))
            waiting += [*part.get("allOf", ()), *part.get("anyOf", ()), part.get("not")]
    return tuple(names)


@functools.lru_cache(maxsize=1024)
def fields_of_text(text: str) -> tuple[str, ...]:
    """Return the arguments that a condition's JSON names; none if it is no condition."""
    written = schema.mapping(text, None)
    return () if written is None or problem(written) else fields(written)


def types(text: str) -> Mapping[str, frozenset[str]]:
    """Return the types of values that a condition in its short form is about, by argument; ``integer`` is a ``number``.
    Arguments of which that is not plain are left out.
    """
    written = schema.mapping(text, None)
    if written is None or problem(written) is not None or not _is_short(written):
        return {}
    about = {name: _types_of(part) for name, part in written.items() if isinstance(part, Mapping)}
    return {name: found for name, found in about.items() if found}


def _types_of(part: Mapping[str, Any]) -> frozenset[str]:
    if not {"not", "allOf", "anyOf"}.isdisjoint(part):
        return frozenset()
    if "type" in part:
        return named_types(part)
    if about := {_ABOUT[keyword] for keyword in part if keyword in _ABOUT}:
        return frozenset(about)
    values = [part["const"]] if "const" in part else part.get("enum", ())
    return frozenset(map(_type_of, values))


def named_types(part: Mapping[str, Any]) -> frozenset[str]:
    """Return the types that a schema names; ``integer`` is a ``number``."""
    named = part.get("type", ())
    listed = [named] if isinstance(named, str) else named if isinstance(named, list) else []
    return frozenset("number" if each == "integer" else each for each in listed if isinstance(each, str))


@functools.lru_cache(maxsize=1024)
def reads_only_its_fields(text: str) -> bool:
    """Return whether a condition depends on nothing but the arguments that it names."""
    written = schema.mapping(text, None)
    if written is None or problem(written):
        return False
    waiting: list[Any] = [expanded(written)]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            if not _BY_NAME.issuperset(part):
                return False
            waiting += [*part.get("allOf", ()), *part.get("anyOf", ()), part.get("not")]
    return True


class Evaluation:
    """The evaluation of conditions on the arguments of one call, with the steps that are left for it.

    With ``is_quick``, TooComplexError is raised where an evaluation would take long.
    """

    __slots__ = ("_arguments", "_is_quick", "_steps")

    def __init__(self, arguments: Mapping[str, Any], *, is_quick: bool = False) -> None:
        self._arguments = arguments
        self._is_quick = is_quick
        self._steps = QUICK_STEPS if is_quick else STEPS

    def fits(self, text: str, *, certainly: bool) -> bool | None:
        """Return whether the arguments certainly, or else possibly, fit the condition in ``text``; None if that cannot
        be found out.
        """
        checks = _checks(text, certainly)
        if checks is None:
            return None
        try:
            return all(self._fits(name, checker) for name, checker in checks)
        except TooComplexError:
            if self._is_quick:
                raise
            self._steps = 0
            return None
        except Exception:
            # Numbers may be too large for arithmetic, and arguments nested too deeply.
            return None

    def _fits(self, name: str | None, checker: validator.Validator) -> bool:
        """Return whether an argument, or all arguments together, fit one schema."""
        value = self._arguments if name is None else self._arguments.get(name, _MISSING)
        if value is _MISSING:
            return False
        self._look_at(value)
        is_fitting, self._steps = checker.fits(value, self._steps)
        return is_fitting

    def _look_at(self, value: Any) -> None:
        """Raise ValueError if what a condition reads is not plain JSON, as it may be in Python: a tuple is no list for
        a schema, and every comparison with NaN is false.
        """
        waiting = [value]
        count = 0
        while waiting:
            value = waiting.pop()
            count += 1
            if isinstance(value, dict):
                waiting += value.values()
            elif isinstance(value, list):
                waiting += value
            elif isinstance(value, float):
                if not math.isfinite(value):
                    raise ValueError("not JSON")
            elif value is not None and not isinstance(value, str | int):
                raise ValueError("not JSON")
            if count > self._steps * _VALUES_PER_STEP:
                raise TooComplexError
        self._steps -= count // _VALUES_PER_STEP


@functools.lru_cache(maxsize=1024)
def _checks(text: str, certainly: bool) -> tuple[tuple[str | None, validator.Validator], ...] | None:
    """Return the validators of a condition, each of one argument that must be given, or else (None) of them all; None
    if it is no condition, which may have been written around the check.
    """
    written = schema.mapping(text, None)
    if written is None or problem(written) is not None:
        return None
    if not _is_short(written):
        return ((None, validator.Validator(_as_read(expanded(written), certainly))),)
    parts = expanded(written)["properties"]
    return tuple((name, validator.Validator(_as_read(part, certainly))) for name, part in parts.items())


def _as_read(part: Any, certainly: bool) -> Any:
    """Return a schema that values fit if they certainly, or else possibly, fit this one."""
    if not isinstance(part, Mapping):
        return part
    read: dict[str, Any] = {}
    for keyword, value in part.items():
        if keyword in _NAMING:
            read[keyword] = {name: _as_read(inner, certainly) for name, inner in value.items()}
        elif keyword in _NESTING:
            read[keyword] = _as_read(value, certainly)
        elif keyword in _LISTING:
            read[keyword] = [_as_read(inner, certainly) for inner in value]
        elif keyword == "not":
            read[keyword] = _as_read(value, not certainly)
        else:
            read[keyword] = value
    named = named_types(part)
    if len(named) == 1:
        return read
    if certainly:
        about = {_ABOUT[keyword] for keyword in part if keyword in _ABOUT}
        if not about:
            return read
        # Of several types, too, a keyword is about one only.
        if len(about) > 1 or (named and not about <= named):
            return False
        (type_,) = about
        return {**read, "type": "integer" if named and type_ not in part["type"] else type_}
    values = [part["const"]] if "const" in part else part.get("enum")
    if values is None:
        return read
    listed = {keyword: read.pop(keyword) for keyword in ("const", "enum") if keyword in read}
    of_other_types = {"not": {"type": sorted({_type_of(value) for value in values})}}
    return {**read, "allOf": [*read.get("allOf", ()), {"anyOf": [listed, of_other_types]}]}


def _type_of(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
    return "object"


def _keywords(part: Any) -> Iterator[str]:
    """Yield the keywords of a schema and of those in it."""
    waiting = [part]
    while waiting:
        subschema = waiting.pop()
        if not isinstance(subschema, Mapping):
            continue
        for keyword, value in subschema.items():
            yield keyword
            if keyword in _NAMING and isinstance(value, Mapping):
                waiting += value.values()
            elif keyword in _NESTING or keyword == "not":
                waiting.append(value)
            elif keyword in _LISTING and isinstance(value, list):
                waiting += value


def in_words(text: str) -> str:
    """Return a condition as one line for people: its short form, where it has one."""
    written = schema.mapping(text, None)
    if not written:
        return ""
    if _is_short(written):
        return ", ".join(f"{name} {_constraints(inner)}".rstrip() for name, inner in written.items())
    return json.dumps(written, ensure_ascii=False)


_WORDS: Mapping[str, str] = {
    "minimum": "≥ {}",
    "maximum": "≤ {}",
    "exclusiveMinimum": "> {}",
    "exclusiveMaximum": "< {}",
    "const": "is {}",
    "enum": "is one of {}",
    "pattern": "matches {}",
    "type": "is a {}",
    "minLength": "has at least {} characters",
    "maxLength": "has at most {} characters",
    "minItems": "has at least {} items",
    "maxItems": "has at most {} items",
}


# A value with one of these is quoted in a list.
_QUOTED = frozenset(" ,\"'[]{}")


def _constraints(inner: Any) -> str:
    if not isinstance(inner, Mapping) or not inner:
        return "is given" if inner is not False else "is never right"
    if not {*inner} <= {*_WORDS}:
        return json.dumps(inner, ensure_ascii=False)
    return " and ".join(_WORDS[keyword].format(_value(value)) for keyword, value in inner.items())


def _value(value: Any) -> str:
    if isinstance(value, list) and not any(_QUOTED.intersection(_value(item)) for item in value):
        return ", ".join(map(_value, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
