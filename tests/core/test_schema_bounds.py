"""Tests that checking hostile schemas and arguments is bounded and reported as too complex."""

from __future__ import annotations

import json
import pathlib
import random
import time
from collections.abc import Mapping
from typing import Any

import pytest

from toolbelt.core import schema
from toolbelt.core.schema import validator

pytestmark = pytest.mark.slow

CATALOGS = pathlib.Path(__file__).parents[2] / "fixtures" / "demo" / "catalogs"
TOO_COMPLEX = "the tool's schema is too complex to check these arguments against"
# Unbounded, these attacks took minutes or hours, or all memory. A bounded check takes about a second when busy.
SECONDS = 15.0


def doubling(part: Mapping[str, Any], levels: int = 40) -> dict[str, Any]:
    """Return a schema in which each definition applies the next twice: ``part`` with NEXT replaced by its reference."""
    text = json.dumps(part)
    definitions = {f"d{n}": json.loads(text.replace("NEXT", f"#/$defs/d{n + 1}")) for n in range(levels)}
    return {"$ref": "#/$defs/d0", "$defs": {**definitions, f"d{levels}": {}}}


def nested(value: Any, levels: int, name: str = "a") -> Any:
    for _ in range(levels):
        value = {name: value}
    return value


FILTER: dict[str, Any] = {
    "$ref": "#/$defs/filter",
    "$defs": {
        "filter": {
            "anyOf": [
                {
                    "properties": {"and": {"items": {"$ref": "#/$defs/filter"}}, "op": {"const": op}},
                    "required": ["op"],
                }
                for op in ("and", "or", "not")
            ]
        }
    },
}
NEXT = {"$ref": "NEXT"}
LIST = list(range(200_000))
# A pattern with many states and a text that never repeats defeat the state cache of RE2.
PATTERN = "(a|b)*a(a|b){900}c"
SHUFFLED = "".join(random.Random(1).choices("ab", k=1_000_000))  # noqa: S311


def nested_lists(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = {"and": [value]}
    return value


@pytest.mark.parametrize(
    ("hostile", "arguments"),
    [
        pytest.param(doubling({"allOf": [NEXT, NEXT]}), {}, id="allOf"),
        pytest.param(doubling({"oneOf": [NEXT, NEXT, False]}), {}, id="oneOf"),
        pytest.param(doubling({"anyOf": [{"not": NEXT}, {"not": NEXT}, NEXT]}), {}, id="anyOf"),
        pytest.param(doubling({"if": NEXT, "then": NEXT}), {}, id="if and then"),
        pytest.param(doubling({"$ref": "NEXT", "$dynamicRef": "NEXT"}), {}, id="$dynamicRef"),
        pytest.param(
            doubling({"dependentSchemas": {"a": NEXT, "b": NEXT}}), {"a": 1, "b": 1}, id="dependentSchemas"
        ),
        pytest.param(
            doubling(
                {"unevaluatedProperties": {"type": "integer"}, "$ref": "NEXT", "if": True, "then": NEXT}
            ),
            {"a": 1},
            id="unevaluatedProperties",
        ),
        pytest.param(
            {
                "properties": {
                    "l": doubling({"unevaluatedItems": {}, "$ref": "NEXT", "if": True, "then": NEXT})
                }
            }
            | {
                "$defs": doubling({"unevaluatedItems": {}, "$ref": "NEXT", "if": True, "then": NEXT})["$defs"]
            },
            {"l": [1]},
            id="unevaluatedItems",
        ),
        pytest.param(FILTER, nested_lists(40), id="nested filter"),
        pytest.param(
            {"properties": {"a": {"$ref": "#"}}, "allOf": [{"properties": {"a": {"$ref": "#"}}}]},
            nested({}, 40),
            id="location checked twice per level",
        ),
        pytest.param(
            {"properties": {"s": {"pattern": PATTERN}}},
            {"s": SHUFFLED},
            id="slowest pattern",
        ),
        pytest.param(
            {"patternProperties": {f"{n}x": {} for n in range(2_000)}},
            {f"k{n}": 1 for n in range(200_000)},
            id="many patterns and names",
        ),
        pytest.param(
            {"properties": {"l": {"items": {"enum": [[n, [n]] for n in range(5_000)]}}}},
            {"l": [[1, 2]] * 50_000},
            id="long enum of lists",
        ),
        pytest.param(
            {"properties": {"l": {"items": {"const": [[]] * 20_000}}}},
            {"l": [[[]] * 20_000] * 500},
            id="large const",
        ),
        pytest.param(
            {"properties": {"l": {"allOf": [{"items": {}}] * 1_000}}},
            {"l": LIST},
            id="unconstrained items",
        ),
        pytest.param(
            {"properties": {"l": {"allOf": [{"contains": {}, "minContains": 10**9}] * 1_000}}},
            {"l": LIST},
            id="contains",
        ),
        pytest.param(
            {"properties": {"l": {"allOf": [{"uniqueItems": True}] * 1_000}}}, {"l": LIST}, id="uniqueItems"
        ),
        pytest.param(
            {
                "properties": {"l": {"items": {"$ref": "#/$defs/" + "%41" * 30_000}}},
                "$defs": {"A" * 30_000: {}},
            },
            {"l": LIST},
            id="long reference",
        ),
        pytest.param(
            {"properties": {"l": {"items": {"$ref": "#x"}}}}
            | {"$defs": {"x": {"$anchor": "x"}, **{f"p{n}": {} for n in range(2_000)}}},
            {"l": LIST},
            id="anchor in a large schema",
        ),
    ],
)
def test_an_unbounded_check_is_stopped_with_a_violation(
    hostile: Any, arguments: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A tenth of the steps keeps the test short.
    monkeypatch.setattr(schema, "CHECK_STEPS", schema.CHECK_STEPS // 10)
    text = json.dumps({"type": "object", **hostile})
    start = time.process_time()

    (violation,) = schema.violations(text, arguments)

    assert violation.message.startswith(TOO_COMPLEX)
    assert time.process_time() - start < SECONDS / 10


def test_a_quick_check_raises_if_its_steps_do_not_suffice() -> None:
    text = json.dumps(FILTER)

    assert schema.violations(text, nested_lists(1), is_quick=True) == schema.violations(text, nested_lists(1))
    with pytest.raises(schema.TooComplexError):
        schema.violations(text, nested_lists(5), is_quick=True)


def test_a_schema_is_ready_after_its_first_check() -> None:
    text = json.dumps({"type": "object", "title": "used only by this test"})
    assert not schema.is_ready(text)

    schema.violations(text, {})

    assert schema.is_ready(text)


def test_a_check_takes_the_same_number_of_steps_each_time() -> None:
    errors = validator.Validator(FILTER)
    left = [errors.steps_left(nested_lists(5), 50_000) for _ in range(3)]

    assert left[0] == left[1] == left[2] > 0
    with pytest.raises(validator.TooComplexError):
        errors.steps_left(nested_lists(5), 50_000 - left[0] - 1)


def test_messages_that_quote_a_long_list_repeatedly_are_bounded() -> None:
    text = json.dumps({"properties": {"l": {"anyOf": [{"type": "string"}] * 2_000}}})
    start = time.process_time()

    (violation,) = schema.violations(text, {"l": LIST})

    assert violation.message.startswith(TOO_COMPLEX)
    assert time.process_time() - start < SECONDS


@pytest.mark.parametrize(
    ("rule", "first"),
    [
        ({"additionalProperties": {"type": "string"}}, "1 is not of type 'string'"),
        ({"propertyNames": {"maxLength": 1}}, "'k0' is too long"),
    ],
)
def test_at_most_100_violations_are_listed(rule: Any, first: str) -> None:
    violations = schema.violations(json.dumps(rule), {f"k{n}": 1 for n in range(200_000)})

    assert len(violations) == schema.MAX_VIOLATIONS + 1
    assert violations[0].message == first
    assert violations[-1].message == "there are more than these 100 violations"


def test_exactly_100_violations_are_listed_without_a_note_of_more() -> None:
    rule = json.dumps({"additionalProperties": {"type": "string"}})
    violations = schema.violations(rule, {f"k{n}": 1 for n in range(schema.MAX_VIOLATIONS)})

    assert {violation.message for violation in violations} == {"1 is not of type 'string'"}
    assert len(violations) == schema.MAX_VIOLATIONS


def test_only_the_first_of_many_unknown_names_are_listed() -> None:
    (violation,) = schema.violations('{"additionalProperties": false}', {f"k{n}": 1 for n in range(200_000)})

    assert violation.message.startswith("unknown: 'k0', 'k1', 'k10', ")
    assert violation.message.endswith(f" and {200_000 - validator.MAX_NAMED} more")


def test_a_very_long_name_is_truncated_in_the_path() -> None:
    (violation,) = schema.violations('{"additionalProperties": {"type": "string"}}', {"k" * 1_000_000: 1})
    assert len(violation.path) == schema.MAX_MESSAGE_LENGTH


def test_a_dialect_of_a_subschema_does_not_bypass_the_bounds() -> None:
    inner = {"$schema": "https://json-schema.org/draft/2020-12/schema", "pattern": "(a+)+$"}
    start = time.process_time()

    (violation,) = schema.violations(json.dumps({"properties": {"s": inner}}), {"s": "a" * 40 + "!"})

    assert violation.keyword == "pattern"
    assert time.process_time() - start < SECONDS


@pytest.mark.parametrize(
    ("hostile", "arguments"),
    [
        ({"$ref": "#/x", "x": {"type": "objekt"}}, {"n": 1}),
        ({"properties": {"n": {"$ref": "#/x"}}, "x": {"minimum": "a"}}, {"n": 1}),
        ({"$ref": "#/properties", "properties": {"maxProperties": {"type": "integer"}}}, {}),
        ({"properties": {"n": {"multipleOf": 0.01}}}, {"n": 10**400}),
    ],
)
def test_an_uncheckable_schema_is_a_violation_instead_of_an_exception(hostile: Any, arguments: Any) -> None:
    (violation,) = schema.violations(json.dumps(hostile), arguments)
    assert violation.message.startswith("they cannot be checked against the tool's own schema")


@pytest.mark.parametrize(
    ("hostile", "why"),
    [
        (nested({}, schema.MAX_DEPTH, "items"), "it is nested more than 64 levels deep"),
        ({"properties": nested({"type": "string"}, 5_000)}, "it is nested more than 64 levels deep"),
        (
            {"properties": {f"a{n}": {"anyOf": [{}, {}]} for n in range(20_000)}},
            "it is too large to be checked",
        ),
        (
            {"properties": {"a": {"type": [[n] for n in range(20_000)]}}},
            "not a JSON Schema at properties.a.type",
        ),
        ({"properties": {"a": {"pattern": "(" * 300_000}}}, "it is too large to be checked"),
        ({"properties": {"a": {"pattern": "("}}}, "is not a 'regex'"),
    ],
)
def test_a_schema_that_is_too_deep_too_large_or_malformed_is_refused(hostile: Any, why: str) -> None:
    start = time.process_time()

    problem = str(schema.problem(hostile))

    assert why in problem
    assert len(problem) < 2 * schema.MAX_MESSAGE_LENGTH
    assert time.process_time() - start < SECONDS


@pytest.mark.parametrize(
    "costly",
    [
        doubling({"allOf": [NEXT, NEXT]}),
        {"properties": {"deep": {"properties": {"x": {"$ref": "#/$defs/d0"}}}}}
        | {"$defs": doubling({"allOf": [NEXT, NEXT]})["$defs"]},
        FILTER,
        {"properties": {"where": {"$ref": "#/$defs/filter"}, "limit": {}}, "$defs": FILTER["$defs"]},
        {"properties": {"a": {"$ref": "#"}}, "unevaluatedProperties": {"properties": {"a": {"$ref": "#"}}}}
        | {"allOf": [{"properties": {"a": {"$ref": "#"}}}]},
        {"$ref": "#/x", "x": {"type": "objekt"}},
    ],
)
def test_a_costly_schema_is_recognized_without_arguments(costly: Any) -> None:
    assert schema.problem(costly) is None
    assert schema.is_costly(json.dumps(costly))


@pytest.mark.parametrize(
    "honest",
    [
        {},
        {"properties": {f"a{n}": {"type": "string", "maxLength": n} for n in range(500)}},
        {"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}, "value": {"type": "integer"}}},
        {
            "$ref": "#/$defs/filter",
            "$defs": {
                "filter": {
                    "anyOf": [
                        {"properties": {"and": {"items": {"$ref": "#/$defs/filter"}}}, "required": ["and"]},
                        {"properties": {"or": {"items": {"$ref": "#/$defs/filter"}}}, "required": ["or"]},
                        {"properties": {"field": {"type": "string"}, "equals": {}}, "required": ["field"]},
                    ]
                }
            },
        },
    ],
)
def test_an_ordinary_nested_schema_is_not_costly(honest: Any) -> None:
    assert not schema.is_costly(json.dumps(honest))


def test_real_tools_need_at_most_a_tenth_of_the_allowed_steps() -> None:
    tools = [tool for file in CATALOGS.glob("*.json") for tool in json.loads(file.read_text())["tools"]]
    assert len(tools) > 450
    for tool in tools:
        given = tool.get("inputSchema")
        list(validator.schema_errors(given, schema.SCHEMA_STEPS // 10))
        assert schema.problem(given) is None
        assert not schema.is_costly(json.dumps(given))


def test_arguments_with_5000_rows_of_10_values_are_checked() -> None:
    row = {f"c{n}": n for n in range(10)}
    columns = {name: {"type": "integer"} for name in row}
    text = json.dumps({"properties": {"rows": {"items": {"type": "object", "properties": columns}}}})

    assert schema.violations(text, {"rows": [row] * 5_000}) == ()
    assert [
        violation.path for violation in schema.violations(text, {"rows": [row] * 4_999 + [{"c1": "x"}]})
    ] == ["rows[4999].c1"]


@pytest.mark.parametrize(
    ("rules", "arguments", "is_valid"),
    [
        ({"properties": {"a": {}}, "unevaluatedProperties": False}, {"a": 1}, True),
        ({"properties": {"a": {}}, "unevaluatedProperties": False}, {"b": 1}, False),
        ({"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False}, {"a": 1}, True),
        (
            {"anyOf": [{"required": ["b"], "properties": {"b": {}}}, {}], "unevaluatedProperties": False},
            {"b": 1},
            True,
        ),
        (
            {"$ref": "#/$defs/x", "$defs": {"x": {"properties": {"a": {}}}}, "unevaluatedProperties": False},
            {"a": 1},
            True,
        ),
        ({"if": {"properties": {"a": {"const": 1}}}, "unevaluatedProperties": False}, {"a": 1}, True),
        ({"if": {"properties": {"a": {"const": 1}}}, "unevaluatedProperties": False}, {"a": 2}, False),
        ({"if": False, "else": {"properties": {"a": {}}}, "unevaluatedProperties": False}, {"a": 2}, True),
        (
            {"dependentSchemas": {"a": {"properties": {"b": {}, "a": {}}}}, "unevaluatedProperties": False},
            {"a": 1, "b": 1},
            True,
        ),
        ({"patternProperties": {"^x": {}}, "unevaluatedProperties": False}, {"x1": 1}, True),
        ({"patternProperties": {"^x": {}}, "unevaluatedProperties": False}, {"y": 1}, False),
        ({"patternProperties": {"(?=x)": {}}, "unevaluatedProperties": False}, {"y": 1}, True),
        ({"unevaluatedProperties": {"type": "integer"}}, {"y": 1}, True),
        ({"unevaluatedProperties": {"type": "integer"}}, {"y": "1"}, False),
        ({"allOf": [{"additionalProperties": True}], "unevaluatedProperties": False}, {"y": 1}, True),
    ],
)
def test_unevaluated_properties_are_those_that_no_schema_evaluates(
    rules: Any, arguments: Any, is_valid: bool
) -> None:
    assert (schema.violations(json.dumps(rules), arguments) == ()) is is_valid


@pytest.mark.parametrize(
    ("rules", "items", "is_valid"),
    [
        ({"prefixItems": [{}], "unevaluatedItems": False}, [1], True),
        ({"prefixItems": [{}], "unevaluatedItems": False}, [1, 2], False),
        ({"allOf": [{"items": {}}], "unevaluatedItems": False}, [1, 2], True),
        ({"contains": {"type": "string"}, "unevaluatedItems": {"type": "integer"}}, ["a", 1], True),
        ({"contains": {"type": "string"}, "unevaluatedItems": {"type": "integer"}}, ["a", None], False),
    ],
)
def test_unevaluated_items_are_those_that_no_schema_evaluates(rules: Any, items: Any, is_valid: bool) -> None:
    assert (schema.violations(json.dumps({"properties": {"l": rules}}), {"l": items}) == ()) is is_valid


@pytest.mark.parametrize(
    ("rule", "value", "is_valid"),
    [
        ({"enum": [1]}, 1.0, True),
        ({"enum": [1]}, True, False),
        ({"enum": [[1, {"a": 0}]]}, [1.0, {"a": 0}], True),
        ({"enum": [[0]]}, [False], False),
        ({"enum": ["a", None]}, None, True),
        ({"const": {"a": [1]}}, {"a": [1.0]}, True),
        ({"const": "1"}, 1, False),
        ({"oneOf": [{"type": "integer"}, {"minimum": 3}]}, 2, True),
        ({"oneOf": [{"type": "integer"}, {"minimum": 3}]}, 4, False),
        ({"oneOf": [{"type": "integer"}, {"minimum": 3}]}, 2.5, False),
        ({"$dynamicRef": "#n"}, 1, True),
        ({"$dynamicRef": "#n"}, "1", False),
    ],
)
def test_enum_const_and_one_of_compare_values_as_json(rule: Any, value: Any, is_valid: bool) -> None:
    text = json.dumps({"properties": {"v": rule}, "$defs": {"n": {"$dynamicAnchor": "n", "type": "integer"}}})
    assert (schema.violations(text, {"v": value}) == ()) is is_valid
