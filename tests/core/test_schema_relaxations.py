"""Tests that exactly the relaxations of a changed schema are reported: what it newly accepts."""

from __future__ import annotations

import copy
import json
import time
from pathlib import Path
from typing import Any

import pytest

from toolbelt.core.schema import relaxations

CATALOGS = Path(__file__).parents[2] / "fixtures" / "demo" / "catalogs"

TEXT, LIMIT = {"type": "string"}, {"type": "integer", "maximum": 10}
CLOSED = {"type": "object", "additionalProperties": False}
MORE = "may now be more than 10 (maximum removed)"
OPENED = "“x” may now contain names that are not listed (additionalProperties is no longer false)"
CANNOT_BE_COMPARED = "“x” may accept more: a reference or its alternatives changed, and cannot be compared"
LOOSENED: list[tuple[Any, Any, str]] = [
    (LIMIT, {"type": "integer"}, "“x” " + MORE),
    (LIMIT, {"type": "integer", "maximum": 99}, "“x” may now be more than 10 (maximum 10 → 99)"),
    ({"minimum": 1}, {"minimum": 0}, "“x” may now be less than 1 (minimum 1 → 0)"),
    ({"exclusiveMinimum": 0}, {"minimum": 0}, "“x” may now be 0 or less (exclusiveMinimum removed)"),
    ({"maxLength": 5}, {}, "“x” may now have more than 5 characters (maxLength removed)"),
    ({"minLength": 1}, {}, "“x” may now have fewer than 1 character (minLength removed)"),
    ({"maxItems": 3}, {}, "“x” may now have more than 3 items (maxItems removed)"),
    ({"maxProperties": 3}, {}, "“x” may now have more than 3 properties (maxProperties removed)"),
    ({"uniqueItems": True}, {}, "“x” may now contain equal items (uniqueItems removed)"),
    ({"multipleOf": 5}, {"multipleOf": 2}, "“x” no longer has to be a multiple of 5"),
    ({"pattern": "^a$"}, {}, "“x” may now be another text (pattern ^a$ removed)"),
    ({"pattern": "^a$"}, {"pattern": "a"}, "“x” may now be another text (pattern ^a$ → a)"),
    ({"format": "email"}, {}, "“x” is no longer limited by format (format removed)"),
    ({"not": {"const": 1}}, {"not": {"const": 2}}, "“x” is limited differently by not, and may accept more"),
    ({"enum": ["a"]}, {"enum": ["a", "b"]}, "“x” may now also be \"b\""),
    ({"enum": ["a", "b"]}, TEXT, '“x” may now be something other than "a", "b" (enum removed)'),
    ({"const": True}, {"type": "boolean"}, "“x” may now also be false"),
    ({"const": "safe"}, TEXT, '“x” may now be something other than "safe" (const removed)'),
    (LIMIT, {"enum": [1, 99]}, "“x” " + MORE),
    (TEXT, {}, "“x” may now be of any type (type string removed)"),
    (TEXT, {"type": ["string", "null"]}, "“x” may now also be null (it had the type string)"),
    (TEXT, {"anyOf": [TEXT, {"type": "null"}]}, "“x” may now also be null (it had the type string)"),
    (CLOSED, {"type": "object"}, OPENED),
    ({"items": LIMIT}, {"items": {}}, "“x[]” may now be of any type (type integer removed)"),
    ({"prefixItems": [TEXT, LIMIT]}, {"prefixItems": [TEXT, {"type": "integer"}]}, "“x[1]” " + MORE),
    ({"additionalProperties": LIMIT}, {"additionalProperties": {"type": "integer"}}, "“x.*” " + MORE),
    ({"anyOf": [TEXT, LIMIT]}, {"anyOf": [{"type": "integer"}, TEXT]}, "“x” " + MORE),
    ({"allOf": [{"type": "integer"}, LIMIT]}, {"allOf": [{"type": "integer"}]}, "“x” " + MORE),
    ({"allOf": [False]}, {}, "“x” may now be given (it was not allowed)"),
    ({"items": LIMIT}, {"items": LIMIT, "prefixItems": [LIMIT, {"type": "integer"}]}, "“x[1]” " + MORE),
    ({"items": False}, {"items": False, "prefixItems": [{}]}, "“x[0]” may now be given (it was not allowed)"),
    (CLOSED, {**CLOSED, "patternProperties": {".": {}}}, "“x” may now contain names that match . (patternProperties)"),
    ({"additionalProperties": LIMIT}, {"additionalProperties": LIMIT, "patternProperties": {"^b": {}}},
     "“x” may now contain names that match ^b (patternProperties)"),
    ({"contains": LIMIT}, {"contains": LIMIT, "minContains": 0},
     "“x” no longer has to contain certain items (minContains is 0)"),
]  # fmt: skip
UNCHANGED: list[tuple[Any, Any]] = [
    (LIMIT, {**LIMIT, "description": "How many.", "default": 3, "examples": [1]}),
    (LIMIT, {"type": "integer", "maximum": 5}),
    (LIMIT, {"type": "integer", "exclusiveMaximum": 11}),
    (LIMIT, {"allOf": [LIMIT, {"minimum": 1}]}),
    (LIMIT, {"enum": [1, 2]}),
    (LIMIT, TEXT | LIMIT | {"const": 3}),
    ({"minLength": 0}, {}),
    ({"pattern": "^a"}, {"enum": ["ab", "ac"]}),
    (TEXT, {"enum": ["a"]}),
    ({"type": "number"}, {"type": "integer"}),
    ({"enum": [True, False]}, {"type": "boolean"}),
    ({"enum": [1]}, {"enum": [1.0]}),
    ({"anyOf": [TEXT, {"type": "null"}]}, TEXT),
    ({"anyOf": [TEXT, LIMIT]}, {"anyOf": [LIMIT, {**TEXT, "title": "Text"}]}),
    ({"type": "object"}, CLOSED),
    ({"items": TEXT}, {"items": False}),
    ({"if": {"title": "One", "const": 1}}, {"if": {"const": 1}}),
]


def tool(part: Any, **beside: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": part}, **beside}


@pytest.mark.parametrize(("before", "after", "sentence"), LOOSENED)
def test_a_removed_or_loosened_limit_is_reported_with_its_location(
    before: Any, after: Any, sentence: str
) -> None:
    assert sentence in relaxations.of(tool(before), tool(after))


@pytest.mark.parametrize(("before", "after", "_sentence"), LOOSENED)
def test_an_added_or_tightened_limit_is_not_reported(before: Any, after: Any, _sentence: str) -> None:
    assert sentences_of(before, before) == sentences_of(after, after) == ()
    # With these keywords, each version may allow what the other does not, or they are not compared.
    unclear = {"pattern", "not", "multipleOf", "enum", "patternProperties", "minContains"}
    if not after.keys() & unclear or before.keys() == after.keys() == {"enum"}:
        assert sentences_of(after, before) == ()


def sentences_of(before: Any, after: Any) -> tuple[str, ...]:
    return relaxations.of(tool(before), tool(after))


@pytest.mark.parametrize(("before", "after"), UNCHANGED)
def test_a_change_that_accepts_no_more_is_not_reported(before: Any, after: Any) -> None:
    assert sentences_of(before, after) == ()


def test_an_argument_that_is_no_longer_required_is_reported() -> None:
    assert relaxations.of(tool(TEXT, required=["x"]), tool(TEXT)) == ("“x” is no longer required",)


def test_a_removed_argument_loses_its_limits_unless_others_are_forbidden() -> None:
    with_limit = {"type": "object", "properties": {"x": LIMIT, "q": TEXT}}
    without: dict[str, Any] = {"type": "object", "properties": {}}

    assert relaxations.of(with_limit, without) == ("“x” may now be more than 10 (maximum removed)",)
    assert relaxations.of(with_limit, {**without, "additionalProperties": False}) == ()
    assert relaxations.of(with_limit | {"required": ["q"]}, without | {"additionalProperties": False}) == (
        "“q” is no longer required (it is no longer listed)",
    )


def test_allowing_additional_arguments_is_reported() -> None:
    assert relaxations.of(tool(TEXT, additionalProperties=False), tool(TEXT)) == (
        "the argument object may now contain names that are not listed (additionalProperties is no longer false)",
    )


def test_limits_are_compared_through_references_and_cycles() -> None:
    def tree(most: int) -> dict[str, Any]:
        node = {"properties": {"size": {"maximum": most}, "children": {"items": {"$ref": "#/$defs/Node"}}}}
        return tool({"$ref": "#/$defs/Node"}, **{"$defs": {"Node": node}})

    assert relaxations.of(tree(3), tree(4)) == ("“x.size” may now be more than 3 (maximum 3 → 4)",)
    assert relaxations.of(tree(4), tree(3)) == ()


def test_a_limit_that_moves_into_a_definition_is_not_reported() -> None:
    moved = tool({"$ref": "#/$defs/Limit"}, **{"$defs": {"Limit": LIMIT}})

    assert relaxations.of(tool(LIMIT), moved) == relaxations.of(moved, tool(LIMIT)) == ()


def test_definitions_reached_only_by_an_anchor_are_compared() -> None:
    def anchored(most: int) -> dict[str, Any]:
        return tool({"$ref": "#limit"}, **{"$defs": {"Limit": {"$anchor": "limit", "maximum": most}}})

    assert relaxations.of(anchored(1), anchored(2)) == (
        CANNOT_BE_COMPARED,
        "“$defs.Limit” may now be more than 1 (maximum 1 → 2)",
    )


@pytest.mark.parametrize("keyword", ["$anchor", "$dynamicAnchor"])
def test_a_change_behind_an_anchor_reference_is_reported(keyword: str) -> None:
    reference = {"$anchor": "$ref", "$dynamicAnchor": "$dynamicRef"}[keyword]

    def anchored(name: str, most: int) -> dict[str, Any]:
        return tool({reference: "#limit"}, **{"$defs": {name: {keyword: "limit", "maximum": most}}})

    assert relaxations.of(anchored("Old", 1), anchored("New", 2)) == (CANNOT_BE_COMPARED,)
    assert relaxations.of(anchored("Old", 1), anchored("Old", 1)) == ()


def test_references_within_a_subschema_with_an_id_are_not_resolved_in_the_document() -> None:
    def with_id(most: int) -> dict[str, Any]:
        part = {"$id": "urn:x", "$ref": "#/$defs/limit", "$defs": {"limit": {"maximum": most}}}
        return tool(part, **{"$defs": {"limit": {"maximum": 1}}})

    assert relaxations.of(with_id(1), with_id(2)) == (CANNOT_BE_COMPARED,)
    assert relaxations.of(with_id(2), with_id(2)) == ()


def test_limits_of_older_drafts_are_compared() -> None:
    point = {"items": [{"maximum": 1}], "exclusiveMaximum": True, "maximum": 3}
    loose = {"items": [{"maximum": 2}], "exclusiveMaximum": True, "maximum": 3}

    assert sentences_of(point, loose) == ("“x[0]” may now be more than 1 (maximum 1 → 2)",)


def test_only_the_first_of_many_relaxations_are_listed() -> None:
    wide = {"type": "object", "properties": {f"p{n}": {"maximum": 1} for n in range(500)}}
    open_ = {"type": "object", "properties": {f"p{n}": {} for n in range(500)}}

    reported = relaxations.of(wide, open_)

    assert len(reported) == relaxations.MAX_LISTED + 1
    assert reported[-1].startswith("more limits were removed or loosened")


def chain(most: int, length: int) -> dict[str, Any]:
    """Return a schema with 2 ** length locations, each with a limit."""
    links = {
        f"d{n}": {"properties": {side: {"$ref": f"#/$defs/d{n + 1}"} for side in "lr"}} for n in range(length)
    }
    return tool({"$ref": "#/$defs/d0"}, **{"$defs": {**links, f"d{length}": {"maximum": most}}})


def long_value(most: int) -> dict[str, Any]:
    """Return a schema that makes the comparison use a long value in many locations."""
    parts = {f"x{n}": {"allOf": [{"$ref": "#/$defs/a"}], "maxLength": most + n} for n in range(1000)}
    return tool({}, **{"$defs": {"a": {"enum": ["x" * 1_000_000]}}}) | {"properties": {"x": {}, **parts}}


def nested(most: int) -> dict[str, Any]:
    part: dict[str, Any] = {"maximum": most}
    for _ in range(10):
        part = {"anyOf": [part, {"type": "null"}], "allOf": [copy.deepcopy(part)]}
    return tool(part)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (chain(1, 40), chain(2, 40)),
        (chain(1, 900), chain(2, 900)),
        (nested(1), nested(2)),
        (tool({"enum": list(range(15_000))}), tool({"enum": list(range(15_001))})),
        (long_value(1), long_value(2)),
        (tool({"maximum": 10**400, "multipleOf": 10**400}), tool({"multipleOf": 0.5})),
        (
            tool(
                {"$ref": "#/$defs/a"}, **{"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}
            ),
            tool({"$ref": "#/$defs/a"}, **{"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, TEXT]}}}),
        ),
    ],
    ids=[
        "many locations",
        "deep",
        "nested alternatives",
        "long list",
        "long value",
        "huge numbers",
        "cycles",
    ],
)
def test_comparing_hostile_schemas_takes_bounded_time_and_is_reported(before: Any, after: Any) -> None:
    start = time.process_time()
    reported = relaxations.of(before, after)

    # It takes a tenth of a second on an idle machine.
    assert time.process_time() - start < 2
    assert len(reported) <= relaxations.MAX_LISTED + 2
    assert before["properties"]["x"].get("$ref") == "#/$defs/a" or reported


def test_schemas_of_real_tools_do_not_differ_from_themselves() -> None:
    for path in CATALOGS.glob("*.json"):
        listed = json.loads(path.read_text())
        for entry in listed["tools"] if isinstance(listed, dict) else listed:
            schema = entry.get("inputSchema") or entry.get("input_schema")
            assert relaxations.of(schema, copy.deepcopy(schema)) == (), entry["name"]
