"""A validator of JSON Schema 2020-12 whose work is bounded, whatever the schema and the document say.

jsonschema evaluates, and this module counts. A keyword that is evaluated costs a step (some 5 µs), and what takes
longer costs more: what a loop passes over, what a pattern searches, what a message quotes. When the steps are used up,
TooComplex is raised. So the same schema and document always come to the same end, on a fast machine and on a slow one.

Where jsonschema's own function for a keyword cannot be counted, or keeps more than is needed, there is one here:

- ``pattern`` and ``patternProperties`` run on RE2, in linear time; jsonschema's backtrack.
- ``anyOf`` and ``oneOf`` stop at the first error of a branch; jsonschema's keep every error of every branch.
- ``enum``, ``const`` and ``uniqueItems`` compare canonical forms.
- ``unevaluatedItems`` and ``unevaluatedProperties`` count what they walk through.
"""

from __future__ import annotations

import contextvars
import functools
import heapq
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import jsonschema
import jsonschema_specifications
import re2
import referencing
import referencing.exceptions
import referencing.jsonschema
from jsonschema import validators

from toolbelt.core.schema import forms

LONGEST_MESSAGE = 500
# How many names a message lists.
MAX_NAMED = 20

# How much of something costs as much as a keyword: values passed over in a loop, characters written out, items or
# names looked at one by one.
_PASSED_OVER = 16
_CHARACTERS = 100
_VISITED = 4
# Characters searched, times the size of the pattern's program: RE2 takes that long at worst.
_SEARCHED = 1_000
# The memory that a compiled pattern may take, with what RE2 keeps while it searches.
_PATTERN_BYTES = 1 << 20

# An inline flag that makes a pattern ignore case.
_FOLDING = re.compile(r"\(\?[a-zA-Z]*i")

Errors = Iterator[jsonschema.ValidationError]
Keyword = Callable[[Any, Any, Any, Any], Iterable[jsonschema.ValidationError] | None]


class TooComplex(Exception):
    """The steps were used up before the check came to its end."""


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
        raise TooComplex


class Validator:
    """A schema to check documents against. Its references lead nowhere outside of it."""

    def __init__(self, schema: Any) -> None:
        self._checker = _bound(_CHECKER, schema, referencing.Registry())

    def errors(self, document: Any, steps: int) -> Errors:
        """Yield the errors of a document. Raises TooComplex where finding them takes more steps."""
        return _errors(self._checker, document, _Steps(steps))

    def steps_left(self, document: Any, steps: int) -> int:
        """Return how many of the steps are left after all errors were found. Raises TooComplex where none are."""
        left = _Steps(steps)
        for _ in _errors(self._checker, document, left):
            pass
        return left.left

    def target(self, reference: str) -> Any:
        """Return the schema that a reference leads to; None where there is nothing."""
        try:
            return self._checker._resolver.lookup(reference).contents
        except (referencing.exceptions.Unresolvable, referencing.exceptions.NoSuchResource):
            return None


def schema_errors(schema: Any, steps: int) -> Errors:
    """Yield the errors of a schema by the 2020-12 meta-schema. Raises TooComplex where that takes more steps."""
    return _errors(_META_SCHEMA, schema, _Steps(steps))


def _errors(checker: Any, document: Any, left: _Steps) -> Errors:
    errors = checker.iter_errors(document)
    while True:
        # Set for one error at a time: between two of them, another check may run in the same context.
        token = _STEPS.set(left)
        try:
            error = next(errors, None)
        finally:
            _STEPS.reset(token)
        if error is None:
            return
        yield error


@functools.lru_cache(maxsize=512)
def linear(pattern: str) -> Any:
    """Compile ``pattern`` on RE2; None where RE2 does not take it (lookaround, back-references, or too large)."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _PATTERN_BYTES
    try:
        return re2.compile(pattern, options=options)
    except re2.error:
        return None


def short(text: str) -> str:
    """Cut a text that quotes long arguments: the model wrote them, it need not read them again."""
    return text if len(text) <= LONGEST_MESSAGE else text[: LONGEST_MESSAGE - 1] + "…"


def _matches(pattern: str, text: str) -> bool | None:
    """Return whether the pattern is found in the text; None where RE2 cannot run it."""
    compiled = linear(pattern)
    if compiled is None:
        _take(1)
        return None
    size = compiled.programsize
    _take(1 + size // _CHARACTERS + len(text) * size // _SEARCHED)
    # RE2 reads UTF-8. JSON can hold halves of surrogate pairs, which have none: they count as question marks.
    return compiled.search(text.encode(errors="replace")) is not None


def _equal(one: Any, other: Any) -> bool:
    if not isinstance(one, Mapping | list) or not isinstance(other, Mapping | list):
        return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)
    forms_of_both = forms.comparable(one), forms.comparable(other)
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


def _pattern_properties(validator: Any, patterns: Mapping[str, Any], instance: Any, schema: Any) -> Errors:
    if not validator.is_type(instance, "object"):
        return
    for pattern, subschema in patterns.items():
        for name, value in instance.items():
            if _matches(pattern, name):
                yield from validator.descend(value, subschema, path=name, schema_path=pattern)


def _additional_properties(validator: Any, allowed: Any, instance: Any, schema: Mapping[str, Any]) -> Errors:
    if not validator.is_type(instance, "object"):
        return
    patterns = list(schema.get("patternProperties", ()))
    # A pattern that RE2 cannot run is not enforced, so nothing can be called additional beside it.
    if any(linear(pattern) is None for pattern in patterns):
        return
    _take(len(instance) // _PASSED_OVER)
    named = schema.get("properties", {})
    extra = [name for name in instance if name not in named and not any(_matches(p, name) for p in patterns)]
    if isinstance(allowed, Mapping):
        for name in extra:
            yield from validator.descend(instance[name], allowed, path=name)
    elif allowed is False and extra:
        yield jsonschema.ValidationError(f"not known here: {_listed(extra)}")


def _any_of(validator: Any, options: Any, instance: Any, schema: Any) -> Errors:
    if not any(_fits(validator, instance, option) for option in options):
        yield jsonschema.ValidationError(f"{instance!r} is not valid under any of the given schemas")


def _one_of(validator: Any, options: Any, instance: Any, schema: Any) -> Errors:
    fitting = [option for option in options if _fits(validator, instance, option)]
    if not fitting:
        yield jsonschema.ValidationError(f"{instance!r} is not valid under any of the given schemas")
    elif len(fitting) > 1:
        each = ", ".join(repr(option) for option in [*fitting[1:], fitting[0]])
        yield jsonschema.ValidationError(f"{instance!r} is valid under each of {each}")


def _enum(validator: Any, allowed: Any, instance: Any, schema: Any) -> Errors:
    # A text equals nothing but itself, and a list finds it fast.
    is_text = isinstance(instance, str)
    if not (instance in allowed if is_text else any(_equal(value, instance) for value in allowed)):
        yield jsonschema.ValidationError(f"{instance!r} is not one of {allowed!r}")


def _const(validator: Any, value: Any, instance: Any, schema: Any) -> Errors:
    if not _equal(value, instance):
        yield jsonschema.ValidationError(f"{value!r} was expected")


def _unique_items(validator: Any, wanted: Any, instance: Any, schema: Any) -> Errors:
    if wanted is not True or not validator.is_type(instance, "array"):
        return
    seen = set()
    for item in instance:
        form = forms.comparable(item)
        _take(1 + len(form) // _PASSED_OVER)
        seen.add(form)
    if len(seen) < len(instance):
        yield jsonschema.ValidationError("its items are not all different")


def _unevaluated_properties(validator: Any, rule: Any, instance: Any, schema: Mapping[str, Any]) -> Errors:
    if not validator.is_type(instance, "object"):
        return
    rest = {word: value for word, value in schema.items() if word != "unevaluatedProperties"}
    judged = _judged_names(validator, instance, rest)
    left = [name for name in instance if name not in judged and not _fits(validator, instance[name], rule)]
    if left:
        why = "not allowed" if rule is False else "not valid under the given schema"
        yield jsonschema.ValidationError(f"Unevaluated properties are {why}: {_listed(left)}")


def _unevaluated_items(validator: Any, rule: Any, instance: Any, schema: Mapping[str, Any]) -> Errors:
    if not validator.is_type(instance, "array"):
        return
    rest = {word: value for word, value in schema.items() if word != "unevaluatedItems"}
    judged = _judged_positions(validator, instance, rest)
    left = [
        item
        for position, item in enumerate(instance)
        if position not in judged and not _fits(validator, item, rule)
    ]
    if left:
        why = "not allowed" if rule is False else "not valid under the given schema"
        yield jsonschema.ValidationError(f"Unevaluated items are {why}: {_listed(left)}")


def _judged_names(validator: Any, instance: Mapping[str, Any], schema: Any) -> set[str]:
    """Return the properties that are evaluated by a schema which the instance fits."""
    _take(1 + len(instance) // _VISITED)
    if not isinstance(schema, Mapping):
        return set()
    if "additionalProperties" in schema or "unevaluatedProperties" in schema:
        return set(instance)
    judged = {name for name in schema.get("properties", ()) if name in instance}
    for pattern in schema.get("patternProperties", ()):
        # A pattern that RE2 cannot run is not enforced: nothing can be called unevaluated beside it.
        judged.update(name for name in instance if _matches(pattern, name) is not False)
    for within, part in _in_place(validator, instance, schema):
        judged |= _judged_names(within, instance, part)
    return judged


def _judged_positions(validator: Any, instance: list[Any], schema: Any) -> set[int]:
    """Return the positions of the items that are evaluated by a schema which the instance fits."""
    _take(1 + len(instance) // _VISITED)
    if not isinstance(schema, Mapping):
        return set()
    if "items" in schema or "unevaluatedItems" in schema:
        return set(range(len(instance)))
    judged = set(range(len(schema.get("prefixItems", ()))))
    if "contains" in schema:
        judged.update(n for n, item in enumerate(instance) if _fits(validator, item, schema["contains"]))
    for within, part in _in_place(validator, instance, schema):
        judged |= _judged_positions(within, instance, part)
    return judged


def _in_place(validator: Any, instance: Any, schema: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Yield the schemas that hold for the instance itself beside this one, each with a validator that is there."""
    for word in ("$ref", "$dynamicRef"):
        if word in schema:
            _take(_cost(word, schema[word], instance))
            target = validator._resolver.lookup(schema[word])
            yield validator.evolve(schema=target.contents, _resolver=target.resolver), target.contents
    for word in ("allOf", "anyOf", "oneOf"):
        for part in schema.get(word, ()):
            if _fits(validator, instance, part):
                yield validator, part
    if isinstance(instance, Mapping):
        for name, part in schema.get("dependentSchemas", {}).items():
            if name in instance:
                yield validator, part
    if "if" in schema:
        is_so = _fits(validator, instance, schema["if"])
        if is_so:
            yield validator, schema["if"]
        yield validator, schema.get("then" if is_so else "else")


def _regex(validator: Any, name: Any, instance: Any, schema: Any) -> Errors:
    """Check what the meta-schema calls a regex, and no other format."""
    if name == "regex" and isinstance(instance, str) and not _is_regex(instance):
        yield jsonschema.ValidationError(f"{instance!r} is not a 'regex'")


def _is_regex(pattern: str) -> bool:
    """Return whether RE2 or Python can run the pattern: what neither can is most likely a slip of the pen."""
    if linear(pattern) is not None:
        return True
    _take(1 + len(pattern) * 4)
    if _FOLDING.search(pattern):
        # Python writes out every character of a class that ignores case; that is a lot of work for a look.
        return True
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return False
    return True


def _cost(word: str, value: Any, instance: Any) -> int:
    """Return how many steps a keyword costs before anything beneath it is evaluated."""
    match word:
        case "items" | "contains" | "propertyNames" if isinstance(instance, Mapping | list):
            return 1 + len(instance) // _VISITED
        case "dependentRequired" if isinstance(value, Mapping):
            return 1 + sum(1 + len(names) // _PASSED_OVER for names in value.values())
        case "$ref" if isinstance(value, str):
            return 2 + len(value) // _PASSED_OVER
        case "$dynamicRef" if isinstance(value, str):
            # It looks through all that led here.
            return 50 + len(value) // _PASSED_OVER
    return 1 + (len(value) // _PASSED_OVER if isinstance(value, Mapping | list) else 0)


def _counted(word: str, keyword: Keyword) -> Keyword:
    def evaluate(validator: Any, value: Any, instance: Any, schema: Any) -> Errors:
        _take(_cost(word, value, instance))
        for error in keyword(validator, value, instance, schema) or ():
            # Paid again at each level that an error passes through: that is work, too.
            _take(1 + len(error.message) // _CHARACTERS)
            error.message = short(error.message)
            yield error

    return evaluate


def _evolve(validator: Any, **changes: Any) -> Any:
    """Return a validator of the same class for a part of the schema; jsonschema's own changes it for ``$schema``."""
    return type(validator)(
        changes.get("schema", validator.schema),
        registry=validator._registry,
        _resolver=changes.get("_resolver", validator._resolver),
    )


def _checker(own: Mapping[str, Keyword]) -> Any:
    keywords = {**jsonschema.Draft202012Validator.VALIDATORS, **own}
    counted = {word: _counted(word, keyword) for word, keyword in keywords.items()}
    checker: Any = validators.extend(jsonschema.Draft202012Validator, counted)  # type: ignore[no-untyped-call]
    checker.evolve = _evolve
    return checker


def _bound(checker: Any, schema: Any, registry: Any) -> Any:
    """Return a validator of a schema, whose references are looked up in it and in the registry."""
    resource = referencing.jsonschema.DRAFT202012.create_resource(schema)
    uri = resource.id() or ""
    # Crawled here, once: else each reference to an anchor would crawl the whole schema again.
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
