"""Tests that JSON Schemas and arguments, both possibly hostile, are validated."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from toolbelt.core import schema

TRIP = json.dumps(
    {
        "type": "object",
        "properties": {
            "to": {"type": "string", "pattern": "^[A-Z]{3}$"},
            "seats": {
                "type": "array",
                "items": {"type": "object", "properties": {"row": {"type": "integer"}}},
            },
        },
        "required": ["to"],
        "additionalProperties": False,
    }
)


def paths(schema_: Any, arguments: Any) -> list[str]:
    text = schema_ if isinstance(schema_, str) else json.dumps(schema_)
    return [violation.path for violation in schema.violations(text, arguments)]


def test_valid_arguments_have_no_violations() -> None:
    assert schema.violations(TRIP, {"to": "OSL", "seats": [{"row": 3}]}) == ()


def test_every_violation_is_reported_with_its_path() -> None:
    violations = schema.violations(TRIP, {"to": "oslo", "seats": [{"row": 1}, {"row": "x"}], "meal": 1})
    assert [violation.path for violation in violations] == ["", "seats[1].row", "to"]
    assert "meal" in violations[0].message


def test_a_missing_argument_is_reported_at_the_root() -> None:
    (violation,) = schema.violations(TRIP, {})
    assert (violation.path, violation.message) == ("", "'to' is a required property")


@pytest.mark.parametrize("arguments", [None, [], "x", 1, True])
def test_arguments_that_are_not_an_object_are_refused(arguments: Any) -> None:
    (violation,) = schema.violations(TRIP, arguments)
    assert violation.message == "arguments are a JSON object"


def test_violations_are_in_a_stable_order() -> None:
    properties = {name: {"type": "integer"} for name in "zebra"}
    assert paths({"type": "object", "properties": properties}, dict.fromkeys("zebra", "x")) == sorted("zebra")


def test_a_message_that_quotes_a_long_argument_is_truncated() -> None:
    (violation,) = schema.violations('{"properties": {"n": {"type": "integer"}}}', {"n": "x" * 10_000})
    assert len(violation.message) == schema.MAX_MESSAGE_LENGTH


def test_a_tool_without_a_schema_accepts_any_object() -> None:
    assert schema.violations("", {"anything": 1}) == ()
    assert schema.violations(schema.EMPTY_TEXT, {"anything": 1}) == ()


@pytest.mark.parametrize(
    "text",
    [
        '{"type": "objekt"}',
        '{"properties": []}',
        '{"properties": {"n": {"minimum": "x"}}}',
        '{"required": true}',
    ],
)
def test_an_invalid_schema_is_a_violation_instead_of_an_exception(text: str) -> None:
    (violation,) = schema.violations(text, {"n": 1})
    assert "the tool's own schema is not valid" in violation.message


@pytest.mark.parametrize("text", ["{", "[]", "null", "1"])
def test_a_schema_that_is_not_an_object_is_ignored(text: str) -> None:
    assert schema.violations(text, {}) == ()


def test_a_reference_is_never_fetched() -> None:
    for reference in (
        "http://example.com/x.json",
        "//example.com/x.json",
        "other.json",
        "file:///etc/passwd",
    ):
        (violation,) = schema.violations(json.dumps({"properties": {"n": {"$ref": reference}}}), {"n": 1})
        assert "will not be fetched" in violation.message


def test_an_unresolvable_reference_is_a_violation() -> None:
    (violation,) = schema.violations('{"properties": {"n": {"$ref": "#/$defs/none"}}}', {"n": 1})
    assert "is not in it" in violation.message


def test_a_reference_within_the_schema_is_applied() -> None:
    tree = {
        "type": "object",
        "properties": {"child": {"$ref": "#"}, "n": {"$ref": "#/$defs/n"}},
        "$defs": {"n": {"type": "integer"}},
    }
    assert paths(tree, {"child": {"child": {"n": "x"}}}) == ["child.child.n"]


def test_an_infinitely_recursive_schema_is_a_violation() -> None:
    (violation,) = schema.violations('{"$ref": "#"}', {})
    assert violation.message == "nested too deeply to be checked"


def test_a_recursion_that_ends_in_a_library_is_a_violation() -> None:
    def at(depth: int) -> str:
        if depth:
            return at(depth - 1)
        (violation,) = schema.violations('{"not": {"$ref": "#"}}', {})
        return violation.message

    # Where the stack is full depends on how deep the caller is.
    assert {at(depth) for depth in range(20)} == {"nested too deeply to be checked"}


def test_arguments_nested_too_deeply_are_a_violation() -> None:
    arguments: dict[str, Any] = {}
    inner = arguments
    for _ in range(400):
        inner["child"] = {}
        inner = inner["child"]
    (violation,) = schema.violations('{"properties": {"child": {"$ref": "#"}}}', arguments)
    assert violation.message == "nested too deeply to be checked"


@pytest.mark.parametrize(
    ("schema_", "arguments"),
    [
        ({"properties": {"s": {"type": "string", "pattern": "(a+)+$"}}}, {"s": "a" * 40 + "!"}),
        ({"patternProperties": {"(a+)+$": {"type": "integer"}}}, {"a" * 40 + "!": "x"}),
        ({"patternProperties": {"(a+)+$": {}}, "additionalProperties": False}, {"a" * 40 + "!": "x"}),
        ({"patternProperties": {"(a+)+$": {}}, "unevaluatedProperties": False}, {"a" * 40 + "!": "x"}),
        ({"properties": {"n": {"uniqueItems": True}}}, {"n": [{"i": i} for i in range(3000)]}),
    ],
)
def test_checks_take_at_most_linear_time(schema_: Any, arguments: Any) -> None:
    start = time.process_time()
    paths({"type": "object", **schema_}, arguments)
    assert time.process_time() - start < 2


def test_a_pattern_is_unanchored_and_not_enforced_if_re2_rejects_it() -> None:
    assert paths({"properties": {"s": {"pattern": "b"}}}, {"s": "abc"}) == []
    assert paths({"properties": {"s": {"pattern": "(?=x)"}}}, {"s": "abc"}) == []


def test_a_text_with_a_lone_surrogate_is_checked() -> None:
    assert paths({"properties": {"s": {"pattern": "^a$"}}}, {"s": "\ud800"}) == ["s"]


def test_additional_properties_match_neither_names_nor_patterns() -> None:
    rules = {"properties": {"a": {}}, "patternProperties": {"^x-": {}}, "additionalProperties": False}
    assert paths(rules, {"a": 1, "x-b": 1}) == []
    (violation,) = schema.violations(json.dumps(rules), {"c": 1, "b": 1})
    assert violation.message == "unknown: 'b', 'c'"
    assert paths({"additionalProperties": {"type": "integer"}}, {"b": "x", "c": 1}) == ["b"]
    assert paths({"patternProperties": {"(?=x)": {}}, "additionalProperties": False}, {"b": 1}) == []


@pytest.mark.parametrize(
    ("items", "are_all_different"),
    [
        ([1, 2], True),
        ([1, 1], False),
        ([1, 1.0], False),
        ([1, True], True),
        ([{"a": 1, "b": 2}, {"b": 2, "a": 1}], False),
    ],
)
def test_unique_items_are_compared_as_json(items: list[Any], are_all_different: bool) -> None:
    assert (paths({"properties": {"n": {"uniqueItems": True}}}, {"n": items}) == []) is are_all_different


@pytest.mark.parametrize(
    ("candidate", "why"),
    [
        ({}, None),
        ({"type": "object", "properties": {"$ref": {"type": "string"}}}, None),
        ({"$ref": "#/$defs/a", "$defs": {"a": {}}}, None),
        ([], "a schema is a mapping"),
        ({"type": "string"}, "named arguments"),
        ({"type": "object", "properties": {"a": {"type": "objekt"}}}, "at properties.a.type"),
        ({"properties": {"a": {"$dynamicRef": "https://example.com/x"}}}, "will not be fetched"),
        ({"anyOf": [{"$ref": "x.json"}]}, "will not be fetched"),
    ],
)
def test_a_tools_schema_must_be_a_self_contained_object_schema(candidate: Any, why: str | None) -> None:
    problem = schema.problem(candidate)
    assert problem is None if why is None else why in str(problem)


def test_canonical_json_is_sorted_and_compact() -> None:
    assert schema.canonical({"b": [1, "é"], "a": None}) == '{"a":null,"b":[1,"é"]}'
    assert schema.canonical(schema.EMPTY) == schema.EMPTY_TEXT


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        (None, None, True),
        (None, {}, False),
        ({"n": 1}, {"n": 1.0}, True),
        ({"n": 1}, {"n": True}, False),
        ({"n": [0, {"a": False}]}, {"n": [0, {"a": 0}]}, False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
    ],
)
def test_values_are_compared_as_json_and_not_as_python(first: Any, second: Any, is_same: bool) -> None:
    assert schema.same(first, second) is is_same
