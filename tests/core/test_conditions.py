"""Tests of conditions on arguments: what they accept, what is certain, what is possible, and what is unknown."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolbelt.core import conditions, schema

OVER_500 = {"amount": {"exclusiveMinimum": 500}}
OURS = {"to": {"pattern": "@example\\.com$"}}
HIGH = "\N{MATHEMATICAL BOLD SMALL A}"


def fits(condition: Any, arguments: dict[str, Any], *, certainly: bool = False) -> bool | None:
    return conditions.Evaluation(arguments).fits(schema.canonical(condition), certainly=certainly)


@pytest.mark.parametrize(
    ("condition", "problem"),
    [
        ({}, "it is empty, so it would always hold"),
        ({"amount": {"exclusiveMinimun": 1}}, "'exclusiveMinimun' is not a keyword"),
        ({"amount": {"minimum": "1"}}, "not a JSON Schema"),
        ({"to": {"format": "email"}}, "it would not be checked. Write a pattern"),
        ({"to": {"oneOf": [{"const": 1}]}}, "write anyOf"),
        ({"to": {"$ref": "#/$defs/a"}}, "write the schema in its place"),
        ({"properties": {"to": {"$ref": "https://example.com/s"}}}, "it refers to"),
        ({"to": {"pattern": "(?=a)"}}, "cannot be run"),
        ({"to": {"pattern": "("}}, "is not a 'regex'"),
        ({"to": {"patternProperties": {"(?=a)": True}}}, "cannot be run"),
        ({"amount": {"minimum": 1}, "required": ["amount"]}, "'amount' is not a keyword"),
        ({"type": "array"}, "the schema's type must be 'object'"),
        ({"memo": {"const": "x" * 8_000}}, "longer than 8000 bytes"),
        ({f"a{n}": True for n in range(11)}, "more than 10 arguments"),
    ],
)
def test_what_would_not_be_enforced_is_no_condition(condition: Any, problem: str) -> None:
    assert problem in (conditions.problem(condition) or "")


def test_a_condition_that_nests_too_deeply_is_refused_before_it_is_walked_through() -> None:
    nested: Any = {"minimum": 1}
    for _ in range(70):
        nested = {"not": nested}
    assert "more than 64 levels" in (conditions.problem({"amount": nested}) or "")


@pytest.mark.parametrize(
    ("condition", "named"),
    [
        (OVER_500, ("amount",)),
        # Names of keywords are also names of arguments.
        ({"type": {"const": "admin"}, "items": {"minItems": 2}}, ("type", "items")),
        ({"properties": {"amount": True}, "required": ["to"]}, ("amount", "to")),
        ({"anyOf": [{"required": ["a"]}, {"not": {"required": ["b"]}}]}, ("a", "b")),
    ],
)
def test_a_condition_knows_the_arguments_that_it_names(condition: Any, named: tuple[str, ...]) -> None:
    assert conditions.problem(condition) is None
    assert conditions.fields(condition) == named


def test_the_short_form_requires_what_it_names_and_a_schema_does_not() -> None:
    assert fits(OVER_500, {}) is False
    assert fits({"properties": OVER_500}, {}) is True


@pytest.mark.parametrize(
    ("condition", "arguments", "certainly", "possibly"),
    [
        (OVER_500, {"amount": 501}, True, True),
        (OVER_500, {"amount": 500}, False, False),
        (OVER_500, {"amount": 500.0}, False, False),
        (OVER_500, {"amount": 10**400}, True, True),
        # Of another type: unknown.
        (OVER_500, {"amount": "1"}, False, True),
        (OVER_500, {"amount": None}, False, True),
        (OVER_500, {"amount": True}, False, True),
        (OVER_500, {"amount": [1]}, False, True),
        # The type is part of the condition: known.
        ({"amount": {"type": "number", "exclusiveMinimum": 500}}, {"amount": "501"}, False, False),
        # Of a list of types, a keyword is about one.
        ({"amount": {"type": ["number", "string"], "maximum": 500}}, {"amount": "8000"}, False, True),
        ({"amount": {"type": ["number", "string"], "maximum": 500}}, {"amount": 1.5}, True, True),
        ({"amount": {"type": ["integer", "string"], "maximum": 500}}, {"amount": 1}, True, True),
        ({"amount": {"type": ["integer", "string"], "maximum": 500}}, {"amount": 1.5}, False, False),
        ({"amount": {"type": ["integer", "number"], "maximum": 500}}, {"amount": 1.5}, True, True),
        ({"amount": {"type": ["null", "string"], "maximum": 500}}, {"amount": "8000"}, False, True),
        (
            {"amount": {"type": ["number", "string"], "maximum": 5, "maxLength": 9}},
            {"amount": 1},
            False,
            True,
        ),
        ({"amount": {"type": ["number", "string"], "const": 8000}}, {"amount": "8000"}, False, True),
        ({"amount": {"type": ["number", "string"], "const": 8000}}, {"amount": [8000]}, False, False),
        ({"n": {"const": 1}}, {"n": 1.0}, True, True),
        ({"n": {"const": 1}}, {"n": 2}, False, False),
        ({"n": {"const": 1}}, {"n": "1"}, False, True),
        ({"n": {"const": 1}}, {"n": True}, False, True),
        ({"n": {"enum": ["a", None]}}, {"n": None}, True, True),
        ({"n": {"enum": ["a", None]}}, {"n": "b"}, False, False),
        ({"n": {"enum": ["a", None]}}, {"n": ["a"]}, False, True),
        (OURS, {"to": "a@example.com"}, True, True),
        (OURS, {"to": "a@example.com\n"}, False, False),
        (OURS, {"to": "a@EXAMPLE.com"}, False, False),
        (OURS, {"to": ["a@example.com"]}, False, True),
        ({"to": {"not": {"pattern": "^a"}}}, {"to": "b"}, True, True),
        ({"to": {"not": {"pattern": "^a"}}}, {"to": "a"}, False, False),
        ({"to": {"not": {"pattern": "^a"}}}, {"to": 1}, False, True),
        ({"to": {"not": {"const": "a"}}}, {"to": ["a"]}, False, True),
        ({"to": {"items": OURS["to"]}}, {"to": ["x@example.com"]}, True, True),
        ({"to": {"items": OURS["to"]}}, {"to": ["x@example.com", "y@evil.example"]}, False, False),
        ({"to": {"items": OURS["to"]}}, {"to": "y@evil.example"}, False, True),
        ({"to": {"minimum": 1, "pattern": "a"}}, {"to": "a"}, False, True),
        ({"to": {"anyOf": [{"const": "a"}, {"minLength": 3}]}}, {"to": "abc"}, True, True),
        ({"to": {"anyOf": [{"const": "a"}, {"minLength": 3}]}}, {"to": "b"}, False, False),
        ({"c": {"properties": {"id": {"maximum": 3}}}}, {"c": {"id": 4}}, False, False),
        ({"c": {"properties": {"id": {"maximum": 3}}}}, {"c": "4"}, False, True),
        ({"c": True}, {"c": None}, True, True),
        ({"c": False}, {"c": None}, False, False),
        ({"name": {"maxLength": 1}}, {"name": HIGH}, True, True),
    ],
)
def test_values_of_another_type_than_a_condition_is_about_fit_possibly_and_never_certainly(
    condition: Any, arguments: Any, certainly: bool, possibly: bool
) -> None:
    assert conditions.problem(condition) is None
    assert fits(condition, arguments, certainly=True) is certainly
    assert fits(condition, arguments) is possibly


@pytest.mark.parametrize("value", [float("nan"), float("inf"), (1, 2), {"a": {1, 2}}, object()])
@pytest.mark.parametrize("certainly", [True, False])
def test_what_is_not_json_is_unknown(value: Any, certainly: bool) -> None:
    assert fits({"amount": {"maximum": 500}}, {"amount": value}, certainly=certainly) is None
    # Only what a condition reads counts.
    assert fits({"amount": {"maximum": 500}}, {"amount": 1, "memo": value}, certainly=certainly) is True
    everything = {"properties": {"amount": {"maximum": 500}}}
    assert fits(everything, {"amount": 1, "memo": value}, certainly=certainly) is None


def test_what_takes_too_many_steps_is_unknown_and_raised_where_it_has_to_be_quick() -> None:
    condition = schema.canonical({"memo": {"pattern": "(a|b)+c$"}})
    slow = {"memo": "ab" * 1_000_000}
    begun = time.process_time()
    assert conditions.Evaluation(slow).fits(condition, certainly=False) is None
    assert time.process_time() - begun < 0.1
    with pytest.raises(conditions.TooComplexError):
        conditions.Evaluation(slow, is_quick=True).fits(condition, certainly=False)
    wide = {"ids": [[n] for n in range(100_000)]}
    assert fits({"ids": {"uniqueItems": True}}, wide) is None
    # The steps are those of all rules of one call: none are left for the next.
    evaluation = conditions.Evaluation({**slow, "amount": 1})
    assert evaluation.fits(condition, certainly=False) is None
    assert evaluation.fits(schema.canonical(OVER_500), certainly=False) is None


def test_large_arguments_that_a_condition_does_not_read_cost_nothing() -> None:
    assert fits(OVER_500, {"amount": 501, "body": "x" * 10_000_000, "ids": [*range(100_000)]}) is True


def test_a_stored_condition_that_is_none_is_unknown() -> None:
    for text in ("", "[]", "{", "{}", '{"a":{"format":"email"}}', '{"a":{"pattern":"(?=a)"}}'):
        assert conditions.Evaluation({"a": 1}).fits(text, certainly=True) is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from((0.5, 1.0, "", "a", "ab", "1")),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)
schemas = st.recursive(
    st.sampled_from(
        (True, False, {"const": 1}, {"const": "a"}, {"enum": [None, "ab"]}, {"minimum": 1}, {"pattern": "^a"})
    )
    | st.sampled_from(({"type": "string"}, {"maxLength": 1}, {"minItems": 1}, {"required": ["a"]}, {}))
    | st.sampled_from(
        (
            {"type": ["integer", "string"], "minimum": 1},
            {"type": ["string", "null"], "maximum": 1},
            {"type": ["number", "string", "array"], "const": 1},
        )
    ),
    lambda inner: st.one_of(
        inner.map(lambda part: {"not": part}),
        st.lists(inner, min_size=1, max_size=2).map(lambda parts: {"anyOf": parts}),
        st.lists(inner, min_size=1, max_size=2).map(lambda parts: {"allOf": parts}),
        inner.map(lambda part: {"items": part}),
        inner.map(lambda part: {"contains": part}),
        inner.map(lambda part: {"properties": {"a": part}}),
    ),
    max_leaves=4,
)


@given(schemas, json_values)
def test_what_fits_certainly_fits_and_what_fits_fits_possibly(part: Any, value: Any) -> None:
    condition = {"x": part}
    assert conditions.problem(condition) is None
    plain = not schema.violations(schema.canonical(conditions.expanded(condition)), {"x": value})
    certainly, possibly = fits(condition, {"x": value}, certainly=True), fits(condition, {"x": value})
    assert None not in (certainly, possibly)
    assert certainly <= plain <= possibly  # type: ignore[operator]


ABOUT: dict[str, dict[str, Any]] = {
    "number": {"minimum": -9},
    "string": {"maxLength": 9},
    "array": {"maxItems": 9},
    "object": {"maxProperties": 9},
}


@given(
    st.sets(st.sampled_from((*ABOUT, "null", "boolean"))).filter(lambda types: len(types) != 1),
    st.sets(st.sampled_from((*ABOUT,)), min_size=1, max_size=2),
    json_values,
)
def test_only_values_that_all_keywords_are_about_fit_certainly_whatever_types_are_listed(
    types: set[str], about: set[str], value: Any
) -> None:
    part: dict[str, Any] = {
        keyword: limit for each in sorted(about) for keyword, limit in ABOUT[each].items()
    }
    part |= {"type": sorted(types)} if types else {}
    is_of_all = all(fits({"x": {"type": each}}, {"x": value}) for each in about)
    is_listed = not types or bool(fits({"x": {"type": sorted(types)}}, {"x": value}))
    assert fits({"x": part}, {"x": value}, certainly=True) is (is_of_all and is_listed)
    assert fits({"x": part}, {"x": value}) is is_listed


def test_conditions_are_written_in_words() -> None:
    both = {"amount": {"minimum": 5, "maximum": 9}, "to": {"enum": ["a", "b"]}, "memo": True}
    assert conditions.in_words(json.dumps(both)) == "amount ≥ 5 and ≤ 9, to is one of a, b, memo is given"
    assert conditions.in_words('{"to":{"enum":["a, b"]}}') == 'to is one of ["a, b"]'
    assert conditions.in_words('{"required":["a"]}') == '{"required": ["a"]}'
