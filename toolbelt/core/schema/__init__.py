"""JSON Schemas of tools, and the arguments that are checked against them (JSON Schema 2020-12).

Schemas come from upstream servers and arguments from models, so both are hostile until proven otherwise: no reference
is ever fetched, every check has so many steps and no more (see :mod:`toolbelt.core.schema.validator`), and a schema
that cannot be checked refuses rather than raises.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import referencing.exceptions

from toolbelt.core.schema import defaults, forms, probe, validator

_Otherwise = TypeVar("_Otherwise")

EMPTY: Mapping[str, Any] = {"type": "object", "properties": {}}
EMPTY_TEXT = '{"properties":{},"type":"object"}'
LONGEST_MESSAGE = validator.LONGEST_MESSAGE
# How many violations are listed.
MAX_VIOLATIONS = 100
# How deep a tool's schema may be nested, in objects and lists; the deepest of 484 real ones has 21 levels.
MAX_DEPTH = 64
# The steps that a check of arguments may take, one of a schema by the meta-schema, and a probe of a schema.
CHECK_STEPS = 100_000
SCHEMA_STEPS = 200_000
PROBE_STEPS = 20_000

canonical = forms.canonical


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One place where arguments do not fit: ``path`` like ``items[2].name`` (empty: the whole), ``message``.

    ``keyword`` is the schema's that is not met, and the message may quote what the arguments hold; it is empty where
    the message quotes nothing of them.
    """

    path: str
    message: str
    keyword: str


def same(one: Any, other: Any) -> bool:
    """Return whether two values are the same JSON: 1 is 1.0, and true is not 1, which Python takes for equal."""
    return forms.comparable(one) == forms.comparable(other)


def mapping(text: str, otherwise: _Otherwise) -> Mapping[str, Any] | _Otherwise:
    """Read the text of a JSON object; ``otherwise`` where there is none, or it is not one (rows written elsewhere)."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return otherwise
    return found if isinstance(found, dict) else otherwise


def problem(schema: Any) -> str | None:
    """Return why ``schema`` cannot be a tool's schema, or None.

    It must be an object by the 2020-12 meta-schema, describe an object (tools take named arguments), hold no reference
    to anything outside itself, and be small and flat enough to be checked.
    """
    if not isinstance(schema, Mapping):
        return "a schema is a mapping"
    if schema.get("type", "object") != "object":
        wrong = validator.short(repr(schema["type"]))
        return f"a tool takes named arguments: the schema's type must be 'object', not {wrong}"
    if _is_deeper(schema, MAX_DEPTH):
        return f"it is nested more than {MAX_DEPTH} levels deep"
    try:
        error = next(validator.schema_errors(dict(schema), SCHEMA_STEPS), None)
    except (validator.TooComplex, RecursionError):
        return "it is too large to be checked"
    if error is not None:
        where = validator.short(_path(error.absolute_path))
        return f"not a JSON Schema{f' at {where}' if where else ''}: {validator.short(error.message)}"
    for reference in _references(schema):
        if not reference.startswith("#"):
            wrong = validator.short(repr(reference))
            return f"it refers to {wrong}, which will not be fetched: put the definition under '$defs'"
    return None


def unenforced_patterns(schema: Any) -> tuple[str, ...]:
    """Return the patterns in a schema that RE2 cannot run: arguments are not held to them. Each once."""
    found = dict.fromkeys(_patterns(schema))
    return tuple(pattern for pattern in found if validator.linear(pattern) is None)


@functools.lru_cache(maxsize=4096)
def is_costly(schema_text: str) -> bool:
    """Return whether arguments that nest as the schema allows take more steps to check than any real tool's.

    A reason to look at the schema, and no proof: a call with such arguments may be refused, since it cannot be checked.
    """
    schema = mapping(schema_text, EMPTY)
    try:
        checker = validator.Validator(schema)
        left = PROBE_STEPS
        for arguments in probe.Probe(schema, checker.target).arguments():
            left = checker.steps_left(arguments, left)
    except Exception:
        # Whatever stands in it, it cannot be checked.
        return True
    return False


def violations(schema_text: str, arguments: Any) -> tuple[Violation, ...]:
    """Check ``arguments`` against the schema written in ``schema_text``: the violations in a stable order.

    No more than MAX_VIOLATIONS are listed; where there are more, the last one says so.
    """
    if not isinstance(arguments, Mapping):
        return (_of_all("arguments are a JSON object"),)
    checker = _validator(schema_text)
    if isinstance(checker, str):
        return (_of_all(f"the tool's own schema is not sound: {checker}"),)
    try:
        errors = checker.errors(arguments, CHECK_STEPS)
        found = [
            Violation(
                path=validator.short(_path(error.absolute_path)),
                message=error.message,
                # A schema that is just ``false`` has no keyword that could be named.
                keyword=str(error.validator or "false"),
            )
            for error in itertools.islice(errors, MAX_VIOLATIONS + 1)
        ]
    except referencing.exceptions.Unresolvable as error:
        missing = validator.short(repr(error.ref))
        return (_of_all(f"the tool's own schema refers to {missing}, which is not in it"),)
    except validator.TooComplex:
        message = (
            "the tool's schema is too complex to check these arguments against: send fewer or simpler ones"
        )
        return (_of_all(message),)
    except RecursionError:
        return (_of_all("nested too deeply to be checked"),)
    except Exception as error:
        # A reference may lead to what is no schema at all, and numbers may be too large for the arithmetic.
        return (_of_all(f"they cannot be checked against the tool's own schema ({type(error).__name__})"),)
    listed = sorted(found[:MAX_VIOLATIONS], key=lambda violation: (violation.path, violation.message))
    if len(found) > MAX_VIOLATIONS:
        listed.append(_of_all(f"there are more than these {MAX_VIOLATIONS} violations"))
    return tuple(listed)


def filled(schema_text: str, arguments: Any) -> Any:
    """Return the arguments with the default of each property that is required and absent.

    In the object itself, and in objects that are properties of it. What is no object is returned as it is.
    """
    found = _defaults(schema_text)
    return (
        defaults.fill(found, arguments) if found is not None and isinstance(arguments, Mapping) else arguments
    )


@functools.lru_cache(maxsize=2048)
def _defaults(schema_text: str) -> defaults.Defaults | None:
    return defaults.of(mapping(schema_text, EMPTY), MAX_DEPTH)


@functools.lru_cache(maxsize=2048)
def _validator(schema_text: str) -> validator.Validator | str:
    """Return what checks arguments against a schema, or why there is nothing that could."""
    schema = mapping(schema_text, EMPTY)
    if wrong := problem(schema):
        return wrong
    try:
        return validator.Validator(schema)
    except Exception as error:
        # An ``$id`` that is no address, or an ``$anchor`` under a dialect of long ago.
        return f"its references cannot be read ({type(error).__name__})"


def _of_all(message: str) -> Violation:
    return Violation(path="", message=message, keyword="")


def _path(parts: Any) -> str:
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def _is_deeper(document: Any, most: int) -> bool:
    """Return whether a document is nested more than so many levels deep, going down level by level."""
    level = [document]
    for _ in range(most):
        level = [
            inner for outer in level for inner in _within(outer) if isinstance(inner, Mapping | list | tuple)
        ]
        if not level:
            return False
    return True


def _within(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list | tuple) else ()


def _mappings(document: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every mapping in a document, however deep it is nested."""
    waiting = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            yield value
        waiting += reversed(list(_within(value)))


def _patterns(schema: Any) -> Iterator[str]:
    """Yield what stands where a pattern does; a property that is called so holds a mapping, which is none."""
    for part in _mappings(schema):
        if isinstance(part.get("pattern"), str):
            yield part["pattern"]
        if isinstance(part.get("patternProperties"), Mapping):
            yield from part["patternProperties"]


def _references(schema: Any) -> Iterator[str]:
    for part in _mappings(schema):
        for word in ("$ref", "$dynamicRef"):
            if isinstance(part.get(word), str):
                yield part[word]
