"""A validator of JSON Schema 2020-12 with bounded work, whatever the schema and the document are.

jsonschema evaluates, and this module counts. Evaluating a keyword costs one step (about 5 µs), and slower work costs
more: values in a loop, characters that a pattern searches, text that a message quotes. When no steps are left,
TooComplexError is raised, so the same schema and document always have the same result, on fast and slow machines.

Keywords whose implementation in jsonschema cannot be counted, or keeps more than is needed, are implemented here:

- ``pattern`` and ``patternProperties`` run on RE2, in linear time; those of jsonschema backtrack.
- ``anyOf`` and ``oneOf`` stop at the first error of a branch; those of jsonschema keep every error of every branch.
- ``enum``, ``const`` and ``uniqueItems`` compare canonical forms.
- ``unevaluatedItems`` and ``unevaluatedProperties`` count what they visit.
"""

from __future__ import annotations

import contextvars
import functools
import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import jsonschema
import jsonschema_specifications
import re2
import referencing
import referencing.exceptions
import referencing.jsonschema
from jsonschema import validators

from toolbelt.core import texts
from toolbelt.core.schema import forms, patterns

MAX_MESSAGE_LENGTH = 500
# How many names a message lists.
MAX_NAMED = 20

# How much of something costs one step: values passed in a loop, characters written, items or names visited.
_PASSED_OVER = 16
_CHARACTERS = 100
_VISITED = 4
# Characters searched, times the size of the pattern's program: the worst case of RE2.
_SEARCHED = 1_000
# The maximum memory of a compiled pattern, including what RE2 caches while it searches.
_PATTERN_BYTES = 1 << 20

# What a library in Rust raises where it did not expect an error. Its class cannot be imported.
_PANIC = "PanicException"

Errors = Iterator[jsonschema.ValidationError]
Keyword = Callable[[Any, Any, Any, Any], Iterable[jsonschema.ValidationError] | None]


class TooComplexError(Exception):
    """No steps were left before the check was complete."""


class _Steps:
    """The steps that a check has left."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left


_STEPS: contextvars.ContextVar[_Steps] = contextvars.ContextVar("toolbelt_schema_steps")


def _take(count: int) -> None:
    steps = _STEPS.get()
    steps.left -= count
    if steps.left < 0:
        raise TooComplexError


class Validator:
    """A schema to check documents against. References outside the schema are not resolved."""

    def __init__(self, schema: Any) -> None:
        self._checker = _bound(_CHECKER, schema, referencing.Registry())

    def errors(self, document: Any, steps: int) -> Errors:
        """Yield the errors of a document; raise TooComplexError if that takes more steps."""
        return _errors(self._checker, document, _Steps(steps))

    def steps_left(self, document: Any, steps: int) -> int:
        """Return the steps left after all errors were found; raise TooComplexError if none are."""
        left = _Steps(steps)
        for _ in _errors(self._checker, document, left):
            pass
        return left.left

    def fits(self, document: Any, steps: int) -> tuple[bool, int]:
        """Return whether a document has no error, and the steps left; raise TooComplexError if none are."""
        left = _Steps(steps)
        return next(_errors(self._checker, document, left), None) is None, left.left

    def target(self, reference: str) -> Any:
        """Return the schema that a reference leads to, or None."""
        try:
            return self._checker._resolver.lookup(reference).contents
        except (referencing.exceptions.Unresolvable, referencing.exceptions.NoSuchResource):
            return None


def schema_errors(schema: Any, steps: int) -> Errors:
    """Yield the errors of a schema by the 2020-12 meta-schema; raise TooComplexError if that takes more steps."""
    return _errors(_META_SCHEMA, schema, _Steps(steps))


def _errors(checker: Any, document: Any, left: _Steps) -> Errors:
    errors = checker.iter_errors(document)
    while True:
        # Set for one error at a time, because another check may run in the same context in between.
        token = _STEPS.set(left)
        try:
            error = next(errors, None)
        except BaseException as failure:
            # The library that looks references up panics where Python would raise a RecursionError, and its exception
            # is not an Exception.
            if type(failure).__name__ == _PANIC:
                raise RecursionError from None
            raise
        finally:
            _STEPS.reset(token)
        if error is None:
            return
        yield error


@functools.lru_cache(maxsize=512)
def linear(pattern: str) -> Any:
    """Return ``pattern`` compiled by RE2; None if RE2 has no equivalent (lookaround, back-references) or it is too
    large.
    """
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _PATTERN_BYTES
    try:
        return re2.compile(patterns.in_re2(pattern), options=options)
    except (patterns.UnsupportedPatternError, patterns.BrokenPatternError, re2.error):
        return None


def short(text: str) -> str:
    """Return a text cut to a limit: messages quote long arguments, which the model need not read again."""
    return texts.cut(text, MAX_MESSAGE_LENGTH)


def _matches(pattern: str, text: str) -> bool | None:
    """Return whether the pattern is found in the text; None if RE2 cannot run it."""
    compiled = linear(pattern)
    if compiled is None:
        _take(1)
        return None
    size = compiled.programsize
    _take(1 + size // _CHARACTERS + len(text) * size // _SEARCHED)
    # RE2 reads UTF-8. JSON can contain lone surrogates, which UTF-8 cannot: they are replaced by question marks.
    return compiled.search(text.encode(errors="replace")) is not None


def _equal(a: Any, b: Any) -> bool:
    if not isinstance(a, Mapping | list) or not isinstance(b, Mapping | list):
        return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)
    forms_of_both = forms.comparable(a), forms.comparable(b)
    _take(sum(map(len, forms_of_both)) // _PASSED_OVER)
    return forms_of_both[0] == forms_of_both[1]


def _fits(validator: Any, instance: Any, schema: Any) -> bool:
    return next(validator.descend(instance, schema), None) is None


def _listed(values: list[Any]) -> str:
    _take(len(values) // _PASSED_OVER)
    listed = ", ".join(heapq.nsmallest(MAX_NAMED, map(repr, values)))
    return listed if len(values) <= MAX_NAMED else f"{listed} and {len(values) - MAX_NAMED} more"


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Errors:
    if validator.is_type(instance, "string") and _matches(pattern, instance) is False:
        yield jsonschema.ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, by_pattern: Mapping[str, Any], instance: Any, schema: Any) -> Errors:
    if not validator.is_type(instance, "object"):
        return
    for pattern, subschema in by_pattern.items():
        for name, value in instance.items():
            if _matches(pattern, name):
                yield from validator.descend(value, subschema, path=name, schema_path=pattern)


def _additional_properties(validator: Any, allowed: Any, instance: Any, schema: Mapping[str, Any]) -> Errors:
    if not validator.is_type(instance, "object"):
        return
    of_names = list(schema.get("patternProperties", ()))
    # A pattern that RE2 cannot run is not enforced, so no property is known to be additional.
    if any(linear(pattern) is None for pattern in of_names):
        return
    _take(len(instance) // _PASSED_OVER)
    properties = schema.get("properties", {})
    extra = [
        name for name in instance if name not in properties and not any(_matches(p, name) for p in of_names)
    ]
    if isinstance(allowed, Mapping):
        for name in extra:
            yield from validator.descend(instance[name], allowed, path=name)
    elif allowed is False and extra:
        yield jsonschema.ValidationError(f"unknown: {_listed(extra)}")


def _any_of(validator: Any, options: Any, instance: Any, schema: Any) -> Errors:
    if not any(_fits(validator, instance, option) for option in options):
        yield jsonschema.ValidationError(f"{instance!r} is not valid under any of the given schemas")


def _one_of(validator: Any, options: Any, instance: Any, schema: Any) -> Errors:
    fitting = [option for option in options if _fits(validator, instance, option)]
    if not fitting:
        yield jsonschema.ValidationError(f"{instance!r} is not valid under any of the given schemas")
    elif len(fitting) > 1:
        texts = ", ".join(repr(option) for option in [*fitting[1:], fitting[0]])
        yield jsonschema.ValidationError(f"{instance!r} is valid under each of {texts}")


def _enum(validator: Any, allowed: Any, instance: Any, schema: Any) -> Errors:
    # Text equals only itself, and a list finds it quickly.
    is_text = isinstance(instance, str)
    if not (instance in allowed if is_text else any(_equal(value, instance) for value in allowed)):
        yield jsonschema.ValidationError(f"{instance!r} is not one of {allowed!r}")


def _const(validator: Any, value: Any, instance: Any, schema: Any) -> Errors:
    if not _equal(value, instance):
        yield jsonschema.ValidationError(f"{value!r} was expected")


def _unique_items(validator: Any, required: Any, instance: Any, schema: Any) -> Errors:
    if required is not True or not validator.is_type(instance, "array"):
        return
    texts = set()
    for item in instance:
        form = forms.comparable(item)
        _take(1 + len(form) // _PASSED_OVER)
        texts.add(form)
    if len(texts) < len(instance):
        yield jsonschema.ValidationError("its items are not all different")


def _unevaluated_properties(validator: Any, rule: Any, instance: Any, schema: Mapping[str, Any]) -> Errors:
    if not validator.is_type(instance, "object"):
        return
    other_keywords = {word: value for word, value in schema.items() if word != "unevaluatedProperties"}
    evaluated = _evaluated_names(validator, instance, other_keywords)
    unevaluated = [
        name for name in instance if name not in evaluated and not _fits(validator, instance[name], rule)
    ]
    if unevaluated:
        why = "not allowed" if rule is False else "not valid under the given schema"
        yield jsonschema.ValidationError(f"Unevaluated properties are {why}: {_listed(unevaluated)}")


def _unevaluated_items(validator: Any, rule: Any, instance: Any, schema: Mapping[str, Any]) -> Errors:
    if not validator.is_type(instance, "array"):
        return
    other_keywords = {word: value for word, value in schema.items() if word != "unevaluatedItems"}
    evaluated = _evaluated_positions(validator, instance, other_keywords)
    unevaluated = [
        item
        for position, item in enumerate(instance)
        if position not in evaluated and not _fits(validator, item, rule)
    ]
    if unevaluated:
        why = "not allowed" if rule is False else "not valid under the given schema"
        yield jsonschema.ValidationError(f"Unevaluated items are {why}: {_listed(unevaluated)}")


def _evaluated_names(validator: Any, instance: Mapping[str, Any], schema: Any) -> set[str]:
    """Return the properties that a schema evaluates which the instance fits."""
    _take(1 + len(instance) // _VISITED)
    if not isinstance(schema, Mapping):
        return set()
    if "additionalProperties" in schema or "unevaluatedProperties" in schema:
        return set(instance)
    evaluated = {name for name in schema.get("properties", ()) if name in instance}
    for pattern in schema.get("patternProperties", ()):
        # A pattern that RE2 cannot run is not enforced, so no property is known to be unevaluated.
        evaluated.update(name for name in instance if _matches(pattern, name) is not False)
    for within, subschema in _in_place(validator, instance, schema):
        evaluated |= _evaluated_names(within, instance, subschema)
    return evaluated


def _evaluated_positions(validator: Any, instance: list[Any], schema: Any) -> set[int]:
    """Return the positions of the items that a schema evaluates which the instance fits."""
    _take(1 + len(instance) // _VISITED)
    if not isinstance(schema, Mapping):
        return set()
    if "items" in schema or "unevaluatedItems" in schema:
        return set(range(len(instance)))
    evaluated = set(range(len(schema.get("prefixItems", ()))))
    if "contains" in schema:
        evaluated.update(n for n, item in enumerate(instance) if _fits(validator, item, schema["contains"]))
    for within, subschema in _in_place(validator, instance, schema):
        evaluated |= _evaluated_positions(within, instance, subschema)
    return evaluated


def _in_place(validator: Any, instance: Any, schema: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Yield the schemas that apply to the instance besides this one, each with a validator at its position."""
    for word in ("$ref", "$dynamicRef"):
        if word in schema:
            _take(_cost(word, schema[word], instance))
            target = validator._resolver.lookup(schema[word])
            yield validator.evolve(schema=target.contents, _resolver=target.resolver), target.contents
    for word in ("allOf", "anyOf", "oneOf"):
        for subschema in schema.get(word, ()):
            if _fits(validator, instance, subschema):
                yield validator, subschema
    if isinstance(instance, Mapping):
        for name, subschema in schema.get("dependentSchemas", {}).items():
            if name in instance:
                yield validator, subschema
    if "if" in schema:
        is_so = _fits(validator, instance, schema["if"])
        if is_so:
            yield validator, schema["if"]
        yield validator, schema.get("then" if is_so else "else")


def _regex(validator: Any, name: Any, instance: Any, schema: Any) -> Errors:
    """Check the format ``regex`` of the meta-schema, and no other format."""
    if name == "regex" and isinstance(instance, str) and linear(instance) is None:
        _take(1 + len(instance))
        if patterns.is_broken(instance):
            yield jsonschema.ValidationError(f"{instance!r} is not a 'regex'")


def _cost(word: str, value: Any, instance: Any) -> int:
    """Return the cost of a keyword in steps, without the subschemas that it evaluates."""
    match word:
        case "items" | "contains" | "propertyNames" if isinstance(instance, Mapping | list):
            return 1 + len(instance) // _VISITED
        case "dependentRequired" if isinstance(value, Mapping):
            return 1 + sum(1 + len(names) // _PASSED_OVER for names in value.values())
        case "$ref" if isinstance(value, str):
            return 2 + len(value) // _PASSED_OVER
        case "$dynamicRef" if isinstance(value, str):
            # It searches every schema that led here.
            return 50 + len(value) // _PASSED_OVER
    return 1 + (len(value) // _PASSED_OVER if isinstance(value, Mapping | list) else 0)


def _counted(word: str, keyword: Keyword) -> Keyword:
    def evaluate(validator: Any, value: Any, instance: Any, schema: Any) -> Errors:
        _take(_cost(word, value, instance))
        for error in keyword(validator, value, instance, schema) or ():
            # Counted at each level that an error passes, because each level is work.
            _take(1 + len(error.message) // _CHARACTERS)
            error.message = short(error.message)
            yield error

    return evaluate


def _evolve(validator: Any, **changes: Any) -> Any:
    """Return a validator of the same class for a part of the schema; jsonschema's version switches class for
    ``$schema``.
    """
    return type(validator)(
        changes.get("schema", validator.schema),
        registry=validator._registry,
        _resolver=changes.get("_resolver", validator._resolver),
    )


def _checker(own_keywords: Mapping[str, Keyword]) -> Any:
    keywords = {**jsonschema.Draft202012Validator.VALIDATORS, **own_keywords}
    counted = {word: _counted(word, keyword) for word, keyword in keywords.items()}
    checker: Any = validators.extend(jsonschema.Draft202012Validator, counted)  # type: ignore[no-untyped-call]
    checker.evolve = _evolve
    return checker


def _bound(checker: Any, schema: Any, registry: Any) -> Any:
    """Return a validator of a schema whose references are looked up in the schema and in the registry."""
    resource = referencing.jsonschema.DRAFT202012.create_resource(schema)
    uri = resource.id() or ""
    # Crawled once here; otherwise each reference to an anchor would crawl the whole schema again.
    resolver = registry.with_resource(uri, resource).crawl().resolver(uri)
    return checker(schema, registry=referencing.Registry(), _resolver=resolver)


_OWN: Mapping[str, Keyword] = {
    "additionalProperties": _additional_properties,
    "anyOf": _any_of,
    "const": _const,
    "enum": _enum,
    "oneOf": _one_of,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "unevaluatedItems": _unevaluated_items,
    "unevaluatedProperties": _unevaluated_properties,
    "uniqueItems": _unique_items,
}
_CHECKER = _checker(_OWN)
_META_SCHEMA = _bound(
    _checker({**_OWN, "format": _regex}),
    jsonschema.Draft202012Validator.META_SCHEMA,
    jsonschema_specifications.REGISTRY,
)
