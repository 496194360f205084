"""JSON Schemas of tools, and checks of arguments against them (JSON Schema 2020-12).

Schemas come from upstream servers and arguments from models, so both are untrusted: no reference is ever fetched, the
work of every check is bounded (see :mod:`toolbelt.core.schema.validator`), and a schema that cannot be checked rejects
the arguments instead of raising.
"""

from __future__ import annotations

import functools
import itertools
import json
import weakref
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import referencing.exceptions

from toolbelt.core import schema_drafts
from toolbelt.core.schema import defaults, forms, plain, probe, validator

_Default = TypeVar("_Default")

EMPTY: Mapping[str, Any] = {"type": "object", "properties": {}}
EMPTY_TEXT = '{"properties":{},"type":"object"}'
MAX_MESSAGE_LENGTH = validator.MAX_MESSAGE_LENGTH
# How many violations are listed.
MAX_VIOLATIONS = 100
# How deep objects and lists may be nested in a tool's schema; the deepest of 484 real ones has 21 levels.
MAX_DEPTH = 64
# The maximum steps of a check of arguments, of a schema against the meta-schema, and of a probe of a schema.
CHECK_STEPS = 100_000
SCHEMA_STEPS = 200_000
PROBE_STEPS = 20_000
# The maximum steps of a check of arguments on an event loop, where everything else waits: about 5 ms.
QUICK_STEPS = 1_000

canonical = forms.canonical
comparable = forms.comparable
TooComplexError = validator.TooComplexError

# The validators that :func:`_validator` caches, by the text of their schema.
_ready: weakref.WeakValueDictionary[str, validator.Validator] = weakref.WeakValueDictionary()


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One place where arguments do not fit: ``path`` like ``items[2].name`` (empty: the whole), and ``message``.

    ``keyword`` is the schema's keyword that is violated, in which case the message may quote the arguments; it is empty
    if the message quotes nothing.
    """

    path: str
    message: str
    keyword: str


def same(a: Any, b: Any) -> bool:
    """Return whether two values are the same JSON: 1 equals 1.0, but unlike in Python, true does not equal 1."""
    return forms.comparable(a) == forms.comparable(b)


def mapping(text: str, default: _Default) -> Mapping[str, Any] | _Default:
    """Return the JSON object in ``text``; ``default`` if there is none (the row may be written elsewhere)."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return default
    return value if isinstance(value, dict) else default


def problem(schema: Any) -> str | None:
    """Return why ``schema`` cannot be a tool's schema, or None.

    It must be an object that is valid by the 2020-12 meta-schema, with tuples and bounds of older drafts converted
    (:mod:`toolbelt.core.schema_drafts`); describe an object (tools take named arguments), contain no external
    reference, and be small and flat enough to check.
    """
    if not isinstance(schema, Mapping):
        return "a schema is a mapping"
    if schema.get("type", "object") != "object":
        found_ = validator.short(repr(schema["type"]))
        return f"a tool takes named arguments: the schema's type must be 'object', not {found_}"
    if _is_deeper(schema, MAX_DEPTH):
        return f"it is nested more than {MAX_DEPTH} levels deep"
    current = schema_drafts.current(schema)
    try:
        error = (
            None if plain.is_valid(current) else next(validator.schema_errors(current, SCHEMA_STEPS), None)
        )
    except (validator.TooComplexError, RecursionError):
        return "it is too large to be checked"
    if error is not None:
        where = validator.short(_path(error.absolute_path))
        return f"not a JSON Schema{f' at {where}' if where else ''}: {validator.short(error.message)}"
    for reference in _references(schema):
        if not reference.startswith("#"):
            found_ = validator.short(repr(reference))
            return f"it refers to {found_}, which will not be fetched: put the definition under '$defs'"
    return None


@functools.lru_cache(maxsize=4096)
def problem_of_text(text: str) -> str | None:
    """Return the problem of a schema's JSON, or None; cached, because checking it takes milliseconds."""
    return problem(mapping(text, None))


def unenforced_patterns(schema: Any) -> tuple[str, ...]:
    """Return the distinct patterns in a schema that RE2 cannot run, which are not enforced on arguments."""
    patterns = dict.fromkeys(_patterns(schema))
    return tuple(pattern for pattern in patterns if validator.linear(pattern) is None)


@functools.lru_cache(maxsize=4096)
def is_costly(schema_text: str) -> bool:
    """Return whether arguments that nest as the schema allows take more steps to check than any real tool's.

    This is a reason to review the schema: a call with such arguments may be refused because it cannot be checked.
    """
    schema = mapping(schema_text, EMPTY)
    try:
        schema = schema_drafts.current(schema)
        checker = validator.Validator(schema)
        left = PROBE_STEPS
        for arguments in probe.Probe(schema, checker.target).arguments():
            left = checker.steps_left(arguments, left)
    except Exception:
        # Whatever the error is, the schema cannot be checked.
        return True
    return False


def violations(schema_text: str, arguments: Any, *, is_quick: bool = False) -> tuple[Violation, ...]:
    """Return where ``arguments`` do not fit the schema in ``schema_text``, in a stable order.

    At most MAX_VIOLATIONS are listed; if there are more, the last one says so. With ``is_quick``, raise TooComplexError
    if the check takes more than QUICK_STEPS.
    """
    if not isinstance(arguments, Mapping):
        return (_of_all("arguments are a JSON object"),)
    checker = _validator(schema_text)
    if isinstance(checker, str):
        return (_of_all(f"the tool's own schema is not valid: {checker}"),)
    try:
        errors = checker.errors(arguments, QUICK_STEPS if is_quick else CHECK_STEPS)
        listed_errors = [
            Violation(
                path=validator.short(_path(error.absolute_path)),
                message=error.message,
                # The schema ``false`` has no keyword to name.
                keyword=str(error.validator or "false"),
            )
            for error in itertools.islice(errors, MAX_VIOLATIONS + 1)
        ]
    except referencing.exceptions.Unresolvable as error:
        missing = validator.short(repr(error.ref))
        return (_of_all(f"the tool's own schema refers to {missing}, which is not in it"),)
    except TooComplexError:
        if is_quick:
            raise
        message = (
            "the tool's schema is too complex to check these arguments against: send fewer or simpler ones"
        )
        return (_of_all(message),)
    except RecursionError:
        return (_of_all("nested too deeply to be checked"),)
    except Exception as error:
        # A reference may lead to something other than a schema, and numbers may be too large for arithmetic.
        return (_of_all(f"they cannot be checked against the tool's own schema ({type(error).__name__})"),)
    listed = sorted(listed_errors[:MAX_VIOLATIONS], key=lambda violation: (violation.path, violation.message))
    if len(listed_errors) > MAX_VIOLATIONS:
        listed.append(_of_all(f"there are more than these {MAX_VIOLATIONS} violations"))
    return tuple(listed)


def is_ready(schema_text: str) -> bool:
    """Return whether a validator for this schema is cached, so that a check need not read it first."""
    return schema_text in _ready


def filled(schema_text: str, arguments: Any) -> Any:
    """Return the arguments with the default of each property that is required and absent.

    Defaults are filled into the object and into objects that are properties of it. Other values are returned unchanged.
    """
    schema_defaults = _defaults(schema_text)
    return (
        defaults.fill(schema_defaults, arguments)
        if schema_defaults is not None and isinstance(arguments, Mapping)
        else arguments
    )


@functools.lru_cache(maxsize=2048)
def _defaults(schema_text: str) -> defaults.Defaults | None:
    return defaults.of(mapping(schema_text, EMPTY), MAX_DEPTH)


@functools.lru_cache(maxsize=2048)
def _validator(schema_text: str) -> validator.Validator | str:
    """Return the validator of a schema, or why there is none."""
    schema = mapping(schema_text, EMPTY)
    if reason := problem(schema):
        return reason
    try:
        _ready[schema_text] = checker = validator.Validator(schema_drafts.current(schema))
        return checker
    except Exception as error:
        # An ``$id`` that is not a URI, or an ``$anchor`` in an old dialect.
        return f"its references cannot be read ({type(error).__name__})"


def _of_all(message: str) -> Violation:
    return Violation(path="", message=message, keyword="")


def _path(parts: Any) -> str:
    text = ""
    for segment in parts:
        text += f"[{segment}]" if isinstance(segment, int) else f".{segment}" if text else str(segment)
    return text


def _is_deeper(document: Any, limit: int) -> bool:
    """Return whether a document is nested deeper than ``limit`` levels."""
    level = [document]
    for _ in range(limit):
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
    """Yield every mapping in a document, at any depth."""
    waiting = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            yield value
        waiting += reversed(list(_within(value)))


def _subschemas(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Yield a schema and those in it, without values that only look like one, such as a default."""
    waiting = [schema]
    while waiting:
        subschema = waiting.pop()
        if not isinstance(subschema, Mapping):
            continue
        yield subschema
        for keyword, value in subschema.items():
            if keyword in schema_drafts.NAMING and isinstance(value, Mapping):
                waiting += value.values()
            elif keyword in schema_drafts.NESTING:
                waiting += value if isinstance(value, list) else [value]


def _patterns(schema: Any) -> Iterator[str]:
    """Yield the patterns in a schema; a property named "pattern" holds a mapping, which is skipped."""
    for subschema in _mappings(schema):
        if isinstance(subschema.get("pattern"), str):
            yield subschema["pattern"]
        if isinstance(subschema.get("patternProperties"), Mapping):
            yield from subschema["patternProperties"]


def _references(schema: Any) -> Iterator[str]:
    for subschema in _subschemas(schema):
        for word in ("$ref", "$dynamicRef"):
            if isinstance(subschema.get(word), str):
                yield subschema[word]
