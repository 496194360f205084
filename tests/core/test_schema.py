"""JSON Schemas and arguments, both hostile until proven otherwise."""

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


def test_arguments_that_fit_have_no_violations() -> None:
    assert schema.violations(TRIP, {"to": "OSL", "seats": [{"row": 3}]}) == ()


def test_every_violation_is_told_with_its_path() -> None:
    found = schema.violations(TRIP, {"to": "oslo", "seats": [{"row": 1}, {"row": "x"}], "meal": 1})
    assert [violation.path for violation in found] == ["", "seats[1].row", "to"]
    assert "meal" in found[0].message


def test_what_is_missing_is_told_of_the_whole() -> None:
    (found,) = schema.violations(TRIP, {})
    assert (found.path, found.message) == ("", "'to' is a required property")


@pytest.mark.parametrize("arguments", [None, [], "x", 1, True])
def test_arguments_are_an_object(arguments: Any) -> None:
    (found,) = schema.violations(TRIP, arguments)
    assert found.message == "arguments are a JSON object"


def test_violations_come_in_a_stable_order() -> None:
    properties = {name: {"type": "integer"} for name in "zebra"}
    assert paths({"type": "object", "properties": properties}, dict.fromkeys("zebra", "x")) == sorted("zebra")


def test_a_message_that_quotes_a_long_argument_is_cut() -> None:
    (found,) = schema.violations('{"properties": {"n": {"type": "integer"}}}', {"n": "x" * 10_000})
    assert len(found.message) == schema.MAX_MESSAGE_LENGTH


def test_a_tool_without_a_schema_takes_any_object() -> None:
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
def test_an_unsound_schema_refuses_and_does_not_raise(text: str) -> None:
    (found,) = schema.violations(text, {"n": 1})
    assert "the tool's own schema is not valid" in found.message


@pytest.mark.parametrize("text", ["{", "[]", "null", "1"])
def test_a_schema_that_is_no_object_is_none(text: str) -> None:
    assert schema.violations(text, {}) == ()


def test_a_reference_is_never_fetched() -> None:
    for reference in (
        "http://example.com/x.json",
        "//example.com/x.json",
        "other.json",
        "file:///etc/passwd",
    ):
        (found,) = schema.violations(json.dumps({"properties": {"n": {"$ref": reference}}}), {"n": 1})
        assert "will not be fetched" in found.message


def test_a_reference_to_nothing_refuses() -> None:
    (found,) = schema.violations('{"properties": {"n": {"$ref": "#/$defs/none"}}}', {"n": 1})
    assert "is not in it" in found.message


def test_a_reference_inside_the_schema_counts() -> None:
    tree = {
        "type": "object",
        "properties": {"child": {"$ref": "#"}, "n": {"$ref": "#/$defs/n"}},
        "$defs": {"n": {"type": "integer"}},
    }
    assert paths(tree, {"child": {"child": {"n": "x"}}}) == ["child.child.n"]


def test_a_schema_that_refers_to_itself_for_ever_refuses() -> None:
    (found,) = schema.violations('{"$ref": "#"}', {})
    assert found.message == "nested too deeply to be checked"


def test_arguments_without_end_refuse() -> None:
    arguments: dict[str, Any] = {}
    inner = arguments
    for _ in range(400):
        inner["child"] = {}
        inner = inner["child"]
    (found,) = schema.violations('{"properties": {"child": {"$ref": "#"}}}', arguments)
    assert found.message == "nested too deeply to be checked"


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
def test_nothing_that_is_checked_takes_more_than_linear_time(schema_: Any, arguments: Any) -> None:
    began = time.process_time()
    paths({"type": "object", **schema_}, arguments)
    assert time.process_time() - began < 2


def test_a_pattern_may_match_anywhere_and_is_not_enforced_where_re2_cannot_run_it() -> None:
    assert paths({"properties": {"s": {"pattern": "b"}}}, {"s": "abc"}) == []
    assert paths({"properties": {"s": {"pattern": "(?=x)"}}}, {"s": "abc"}) == []


def test_half_a_character_is_checked_like_any_other() -> None:
    assert paths({"properties": {"s": {"pattern": "^a$"}}}, {"s": "\ud800"}) == ["s"]


def test_what_is_additional_is_what_neither_names_nor_patterns_allow() -> None:
    rules = {"properties": {"a": {}}, "patternProperties": {"^x-": {}}, "additionalProperties": False}
    assert paths(rules, {"a": 1, "x-b": 1}) == []
    (found,) = schema.violations(json.dumps(rules), {"c": 1, "b": 1})
    assert found.message == "unknown: 'b', 'c'"
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
def test_items_are_compared_as_json(items: list[Any], are_all_different: bool) -> None:
    assert (paths({"properties": {"n": {"uniqueItems": True}}}, {"n": items}) == []) is are_all_different


@pytest.mark.parametrize(
    ("sound", "why"),
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
def test_a_tools_schema_describes_an_object_and_stands_alone(sound: Any, why: str | None) -> None:
    found = schema.problem(sound)
    assert found is None if why is None else why in str(found)


def test_canonical_json_has_one_form() -> None:
    assert schema.canonical({"b": [1, "é"], "a": None}) == '{"a":null,"b":[1,"é"]}'
    assert schema.canonical(schema.EMPTY) == schema.EMPTY_TEXT


@pytest.mark.parametrize(
    ("one", "other", "are_same"),
    [
        (None, None, True),
        (None, {}, False),
        ({"n": 1}, {"n": 1.0}, True),
        ({"n": 1}, {"n": True}, False),
        ({"n": [0, {"a": False}]}, {"n": [0, {"a": 0}]}, False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
    ],
)
def test_sameness_is_that_of_json_and_not_of_python(one: Any, other: Any, are_same: bool) -> None:
    assert schema.same(one, other) is are_same
