"""Is this a JSON Schema, and do these arguments fit it? (JSON Schema 2020-12)

Schemas come from upstream servers and arguments from models, so both are hostile until proven otherwise: no reference
is ever fetched (the registry is empty), ``pattern`` runs on RE2 and ``uniqueItems`` on forms that can be compared
at once, in linear time whatever they say, and a schema that cannot be checked refuses rather than raises.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import jsonschema
import re2
import referencing
import referencing.exceptions
from jsonschema import validators

_Otherwise = TypeVar("_Otherwise")

EMPTY: Mapping[str, Any] = {"type": "object", "properties": {}}
LONGEST_MESSAGE = 500
EMPTY_TEXT = '{"properties":{},"type":"object"}'

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One place where arguments do not fit: ``path`` like ``items[2].name`` (empty: the whole), ``message``.

    ``keyword`` is the schema's that is not met, and the message may quote what the arguments hold; it is empty where
    the message quotes nothing of them.
    """

    path: str
    message: str
    keyword: str


def canonical(value: Any) -> str:
    """Write ``value`` as JSON in its one form here: keys sorted, no spaces, characters as they are."""
    return _ENCODER.encode(value)


def same(one: Any, other: Any) -> bool:
    """Say whether two values are the same JSON: 1 is 1.0, and true is not 1, which Python takes for equal."""
    return _comparable(one) == _comparable(other)


def mapping(text: str, otherwise: _Otherwise) -> Mapping[str, Any] | _Otherwise:
    """Read the text of a JSON object; ``otherwise`` where there is none, or it is not one (rows written elsewhere)."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return otherwise
    return found if isinstance(found, dict) else otherwise


def problem(schema: Any) -> str | None:
    """Say why ``schema`` cannot be a tool's schema, or None.

    It must be an object by the 2020-12 meta-schema, describe an object (tools take named arguments),
    and hold no reference to anything outside itself.
    """
    if not isinstance(schema, Mapping):
        return "a schema is a mapping"
    if schema.get("type", "object") != "object":
        return f"a tool takes named arguments: the schema's type must be 'object', not {schema['type']!r}"
    try:
        jsonschema.Draft202012Validator.check_schema(dict(schema))
    except jsonschema.SchemaError as error:
        where = ".".join(str(part) for part in error.absolute_path)
        return f"not a JSON Schema{f' at {where}' if where else ''}: {error.message}"
    for reference in _references(schema):
        if not reference.startswith("#"):
            return f"it refers to {reference!r}, which will not be fetched: put the definition under '$defs'"
    return None


def unenforced_patterns(schema: Any) -> tuple[str, ...]:
    """Give the patterns in a schema that RE2 cannot run: arguments are not held to them. Each once."""
    return tuple(dict.fromkeys(pattern for pattern in _patterns(schema) if _linear(pattern) is None))


def violations(schema_text: str, arguments: Any) -> tuple[Violation, ...]:
    """Check ``arguments`` against the schema written in ``schema_text``: every violation, in a stable order."""
    if not isinstance(arguments, Mapping):
        return (Violation(path="", message="arguments are a JSON object", keyword=""),)
    try:
        validator = _validator(schema_text)
        found = [
            Violation(
                path=_path(error.absolute_path),
                message=_short(error.message),
                # A schema that is just ``false`` has no keyword that could be named.
                keyword=error.validator or "false",
            )
            for error in validator.iter_errors(arguments)
        ]
    except _Unsound as error:
        return (Violation(path="", message=f"the tool's own schema is not sound: {error}", keyword=""),)
    except referencing.exceptions.Unresolvable as error:
        message = f"the tool's own schema refers to {error.ref!r}, which is not in it"
        return (Violation(path="", message=message, keyword=""),)
    except RecursionError:
        return (Violation(path="", message="nested too deeply to be checked", keyword=""),)
    return tuple(sorted(found, key=lambda violation: (violation.path, violation.message)))


class _Unsound(Exception):
    """A schema that a writer behind the validator's back has left; the message says what is wrong with it."""


@functools.lru_cache(maxsize=2048)
def _validator(schema_text: str) -> Any:
    schema = mapping(schema_text, EMPTY)
    wrong = problem(schema)
    if wrong is not None:
        raise _Unsound(wrong)
    # jsonschema looks for what is unevaluated with patterns that backtrack: beside patterns, nothing is unevaluated.
    backtracks = '"unevaluatedProperties"' in schema_text and '"patternProperties"' in schema_text
    return (_LOOSER if backtracks else _CHECKER)(schema, registry=referencing.Registry())


def _pattern(
    validator: Any, pattern: str, instance: Any, schema: Any
) -> Iterator[jsonschema.ValidationError]:
    if not validator.is_type(instance, "string"):
        return
    compiled = _linear(pattern)
    if compiled is not None and not compiled.search(_encoded(instance)):
        yield jsonschema.ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], instance: Any, schema: Any
) -> Iterator[jsonschema.ValidationError]:
    if not validator.is_type(instance, "object"):
        return
    for pattern, subschema in patterns.items():
        compiled = _linear(pattern)
        for key, value in instance.items():
            if compiled is not None and compiled.search(_encoded(key)):
                yield from validator.descend(value, subschema, path=key, schema_path=pattern)


def _additional_properties(
    validator: Any, allowed: Any, instance: Any, schema: Mapping[str, Any]
) -> Iterator[jsonschema.ValidationError]:
    if not validator.is_type(instance, "object"):
        return
    patterns = [_linear(pattern) for pattern in schema.get("patternProperties", {})]
    # A pattern that RE2 cannot run is not enforced, so nothing can be called additional beside it.
    if None in patterns:
        return
    named = schema.get("properties", {})
    extra = [
        key for key in instance if key not in named and not any(p.search(_encoded(key)) for p in patterns)
    ]
    if isinstance(allowed, Mapping):
        for key in extra:
            yield from validator.descend(instance[key], allowed, path=key)
    elif allowed is False and extra:
        yield jsonschema.ValidationError(f"not known here: {', '.join(sorted(map(repr, extra)))}")


def _unique_items(
    validator: Any, wanted: Any, instance: Any, schema: Any
) -> Iterator[jsonschema.ValidationError]:
    if wanted is True and validator.is_type(instance, "array"):
        forms = {_comparable(item) for item in instance}
        if len(forms) < len(instance):
            yield jsonschema.ValidationError("its items are not all different")


@functools.lru_cache(maxsize=2048)
def _linear(pattern: str) -> Any:
    """Compile ``pattern`` on RE2; None where RE2 does not take it (lookaround, back-references)."""
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options=options)
    except re2.error:
        return None


_CHECKER = validators.extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft202012Validator,
    {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "uniqueItems": _unique_items,
    },
)


_LOOSER = validators.extend(_CHECKER, {"unevaluatedProperties": lambda *_: ()})  # type: ignore[no-untyped-call]


def _encoded(text: str) -> bytes:
    # RE2 reads UTF-8. JSON can hold halves of surrogate pairs, which have none: they count as question marks.
    return text.encode(errors="replace")


def _comparable(value: Any) -> str:
    return canonical(_whole(value))


def _whole(value: Any) -> Any:
    match value:
        case Mapping():
            return {key: _whole(one) for key, one in value.items()}
        case list() | tuple():
            return [_whole(one) for one in value]
        case float() if value.is_integer():
            return int(value)
    return value


def _short(message: str) -> str:
    """Cut a message that quotes long arguments: the model wrote them, it need not read them again."""
    return message if len(message) <= LONGEST_MESSAGE else message[: LONGEST_MESSAGE - 1] + "…"


def _path(parts: Any) -> str:
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def _patterns(node: Any) -> Iterator[str]:
    """Give what stands where a pattern does; a property that is called so gives a mapping, which is none."""
    match node:
        case Mapping():
            for key, value in node.items():
                if key == "pattern" and isinstance(value, str):
                    yield value
                elif key == "patternProperties" and isinstance(value, Mapping):
                    yield from value
                yield from _patterns(value)
        case list() | tuple():
            for value in node:
                yield from _patterns(value)


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, Mapping):
        for key, value in node.items():
            if key in ("$ref", "$dynamicRef") and isinstance(value, str):
                yield value
            else:
                yield from _references(value)
    elif isinstance(node, list):
        for value in node:
            yield from _references(value)
