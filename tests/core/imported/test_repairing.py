"""Tests that schemas with flaws are repaired, so that they can be used and accept no less than before."""

from __future__ import annotations

import copy
import json
import time
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from toolbelt.core import schema
from toolbelt.core.imported import keyword_shapes, repairing

_WORDS = [*keyword_shapes.SHAPES, "id", "components", "schemas"]
_NAMES = st.sampled_from(["a", "b", "type", "$ref", "0", "1", "x/y", ""])
_TEXTS = st.sampled_from(
    ["1", "int", "string", "date", "a", "#", "#/$defs/a", "#a", "x.json", "a#b", "[", "http://[", "/2020-12/"]
)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.sampled_from([0, -1, 1.0, 2.5]) | _TEXTS | _NAMES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(_NAMES, inner, max_size=3)
        | st.dictionaries(st.sampled_from(sorted(_WORDS)), inner, max_size=4)
    ),
    max_leaves=12,
)
_SCHEMAS = st.dictionaries(st.sampled_from(sorted(_WORDS)), _VALUES, max_size=6)


def repaired(listed: Any) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Return an input schema as it is imported, and the codes of its repairs by place."""
    document, made = repairing.arguments(copy.deepcopy(listed))
    assert schema.problem(document) is None
    return document, [(repair.path.removeprefix("inputSchema."), repair.code) for repair in made]


def of_property(listed: Any) -> tuple[Any, list[tuple[str, str]]]:
    """Return the repair of a schema of a property, as :func:`repaired` does."""
    document, made = repaired({"type": "object", "properties": {"q": listed}})
    return document["properties"]["q"], [(path.removeprefix("properties.q."), code) for path, code in made]


@hypothesis.given(_SCHEMAS)
def test_every_repaired_schema_is_valid_and_needs_no_other_repair(listed: dict[str, Any]) -> None:
    document, _ = repaired(listed)

    text = schema.canonical(document)
    about_schema = [found.message for found in schema.violations(text, {}) if "own schema" in found.message]
    assert about_schema == []
    # Addresses within a schema are kept only while it has a reference that depends on them.
    if "$dynamicRef" not in json.dumps(listed):
        assert repaired(json.loads(text)) == (document, [])


@pytest.mark.parametrize(
    ("listed", "read"),
    [
        ({"format": None, "minLength": None, "pattern": None, "enum": None, "items": None}, {}),
        ({"const": None, "default": None}, {"const": None, "default": None}),
        ({"properties": [], "$defs": [], "additionalProperties": []}, {"additionalProperties": {}}),
        ({"required": {}, "anyOf": [], "type": ""}, {"required": []}),
        ({"enum": {"0": "a", "2": "b"}}, {"enum": ["a", "b"]}),
        ({"required": {"1": "a"}}, {"required": ["a"]}),
        ({"required": ["a", "a", None]}, {"required": ["a"]}),
        ({"properties": {"a": True}, "required": "a"}, {"properties": {"a": True}, "required": ["a"]}),
        ({"allOf": {"minLength": 1}}, {"allOf": [{"minLength": 1}]}),
        ({"anyOf": [{"type": "string"}, None]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ({"minimum": "1", "maximum": "-2.5", "multipleOf": "1e1"}, {"minimum": 1, "maximum": -2.5, "multipleOf": 10}),
        ({"minimum": "", "maxItems": "", "multipleOf": ""}, {}),
        ({"exclusiveMaximum": "true", "exclusiveMinimum": "1"}, {"exclusiveMaximum": True, "exclusiveMinimum": 1}),
        (
            {"properties": [{"name": "a", "type": "string", "required": True}]},
            {"properties": {"a": {"type": "string"}}, "required": ["a"]},
        ),
        ({"minLength": 1.0, "maxLength": "5"}, {"minLength": 1, "maxLength": 5}),
        ({"uniqueItems": "true", "deprecated": 0}, {"uniqueItems": True, "deprecated": False}),
        ({"additionalProperties": "false"}, {"additionalProperties": False}),
        ({"type": ["string", None]}, {"type": ["string", "null"]}),
        ({"type": ["string", "string"]}, {"type": ["string"]}),
        ({"$id": "#item"}, {}),
        ({"dependentRequired": {"a": "b", "c": None}}, {"dependentRequired": {"a": ["b"]}}),
        ({"dependencies": {"a": [], "b": {}, "c": "d"}}, {"dependencies": {"a": [], "b": {}, "c": ["d"]}}),
    ],
)  # fmt: skip
def test_what_has_one_reading_gets_it_without_a_finding(listed: Any, read: Any) -> None:
    document, made = of_property(listed)

    assert document == read
    assert {code for _, code in made} <= {"form"}
    assert bool(made) is (document != listed)


@pytest.mark.parametrize(
    ("listed", "type_"),
    [
        ("int", "integer"), ("INTEGER", "integer"), ("Float", "number"), ("str", "string"), ("bool", "boolean"),
        ("List[str]", "array"), ("string[]", "array"), ("dict", "object"), ("None", "null"),
        ("string|null", ["string", "null"]), ("int?", ["integer", "null"]), (["str", "null"], ["string", "null"]),
    ],
)  # fmt: skip
def test_a_type_in_another_spelling_is_read_with_a_finding(listed: Any, type_: Any) -> None:
    assert of_property({"type": listed}) == ({"type": type_}, [("type", "type")])


def test_a_type_that_is_any_type_or_a_format_is_read_as_that() -> None:
    assert of_property({"type": "any"}) == ({}, [("type", "type")])
    assert of_property({"type": "date"}) == ({"type": "string", "format": "date"}, [("type", "type")])


@pytest.mark.parametrize(
    "listed",
    [
        {"type": "file"}, {"type": ["string", "file"]}, {"type": {"type": "string"}}, {"enum": []}, {"enum": "a"},
        {"minLength": -1}, {"minLength": 0.5}, {"multipleOf": 0}, {"maximum": "ten"}, {"pattern": 5}, {"items": 5},
        {"pattern": "[a-"}, {"patternProperties": {"(a": {}, "b": {}}},
        {"required": "a"}, {"properties": "a"}, {"anyOf": "a"}, {"uniqueItems": "perhaps"},
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_left_out_with_a_finding(listed: dict[str, Any]) -> None:
    (keyword,) = listed

    assert of_property(listed) == ({}, [(keyword, "unusable")])


def test_names_that_a_broken_pattern_was_to_allow_are_not_refused() -> None:
    listed: Any = {"additionalProperties": False, "patternProperties": {"[a-": {}}, "type": "object"}

    assert repaired(listed) == (
        {"additionalProperties": True, "type": "object"},
        [("patternProperties", "unusable")],
    )


def test_a_property_that_is_no_schema_keeps_its_name() -> None:
    listed: Any = {"properties": {"a": None, "b": 5, "c": "int", "d": []}}

    assert repaired(listed) == (
        {"properties": {"a": {}, "b": {}, "c": {"type": "integer"}, "d": {}}},
        [
            ("properties.a", "form"),
            ("properties.b", "unusable"),
            ("properties.c", "type"),
            ("properties.d", "form"),
            ("properties.c.type", "type"),
        ],
    )


def test_an_annotation_of_the_wrong_type_is_left_out_without_a_finding() -> None:
    listed: Any = {
        "title": 5,
        "description": ["a"],
        "examples": {"a": 1},
        "deprecated": "use r",
        "format": [],
    }

    document, made = of_property(listed)

    assert document == {}
    assert {code for _, code in made} == {"annotation"}


def test_draft_3s_required_of_a_property_moves_to_its_object() -> None:
    listed = {
        "properties": {
            "a": {"type": "string", "required": True},
            "b": {"required": "false"},
            "c": {"required": True, "properties": {"d": {"required": True}}},
        },
        "required": ["b"],
    }

    document, made = repaired(listed)

    assert document == {
        "properties": {"a": {"type": "string"}, "b": {}, "c": {"properties": {"d": {}}, "required": ["d"]}},
        "required": ["b", "a", "c"],
    }
    assert {code for _, code in made} == {"form"}


def test_older_forms_in_a_schema_that_declares_2020_12_are_read_with_their_older_meaning() -> None:
    listed = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "properties": {"n": {"minimum": 0, "exclusiveMinimum": True}, "p": {"items": [{"type": "number"}]}},
    }

    document, made = repaired(listed)

    assert made == [("$schema", "draft")]
    text = schema.canonical(document)
    paths = [found.path for found in schema.violations(text, {"n": 0, "p": ["a"]})]
    assert paths == ["n", "p[0]"]


def test_a_reference_to_the_schemas_own_address_leads_into_it() -> None:
    listed = {
        "$id": "https://x.example/schemas/root.json",
        "properties": {
            "a": {"$ref": "https://x.example/schemas/root.json#/$defs/A"},
            "b": {"$ref": "root.json"},
            "c": {"$ref": "b.json#/properties/x"},
        },
        "$defs": {
            "A": {"type": "string"},
            "B": {"$id": "b.json", "properties": {"x": {"$ref": "#/$defs/X"}}, "$defs": {"X": {"type": "integer"}}},
        },
    }  # fmt: skip

    document, made = repaired(listed)

    assert document["properties"] == {
        "a": {"$ref": "#/$defs/A"},
        "b": {"$ref": "#"},
        "c": {"$ref": "#/$defs/B/properties/x"},
    }
    assert document["$defs"]["B"]["properties"] == {"x": {"$ref": "#/$defs/B/$defs/X"}}
    assert {code for _, code in made} == {"reference", "form"}
    assert [found.path for found in schema.violations(schema.canonical(document), {"a": 1, "c": "x"})] == [
        "a",
        "c",
    ]


@pytest.mark.parametrize(
    ("reference", "code"),
    [
        ("#/$defs/Missing", "dangling"),
        ("#missing", "dangling"),
        ("other.json", "dangling"),
        ("#/properties/other/enum/0", "dangling"),
        ("#/properties", "dangling"),
        ("https://x.example/other.json", "external"),
        ("#/properties/q", "circular"),
        (5, "unusable"),
    ],
)
def test_a_reference_to_nothing_accepts_any_value_with_a_finding(reference: Any, code: str) -> None:
    listed = {"properties": {"q": {"$ref": reference, "title": "Q"}, "other": {"enum": [{}]}}}

    document, made = repaired(listed)

    assert document["properties"]["q"] == {"title": "Q"}
    assert made == [("properties.q.$ref", code)]


@pytest.mark.parametrize(
    "circle",
    [
        {"not": {"$ref": "#/properties/q"}},
        {"allOf": [{"anyOf": [{"$ref": "#/properties/q"}]}]},
        {"if": {"$ref": "#/$defs/A"}, "then": True},
        {"dependentSchemas": {"x": {"$ref": "#/$defs/A"}}},
        {"$ref": "#/$defs/A"},
        {"$dynamicRef": "#/$defs/A"},
    ],
)
def test_schemas_that_apply_each_other_to_the_same_value_are_ended_with_a_finding(
    circle: dict[str, Any],
) -> None:
    listed = {
        "properties": {"q": circle},
        "$defs": {"A": {"oneOf": [{"$ref": "#/$defs/B"}]}, "B": {"allOf": [{"$ref": "#/properties/q"}]}},
    }

    document, made = repaired(listed)

    assert {code for _, code in made} == {"circular"}
    messages = [found.message for found in schema.violations(schema.canonical(document), {"q": {"x": 1}})]
    assert "nested too deeply to be checked" not in messages


@pytest.mark.parametrize(
    "reference", ["Pet", "#Pet", "#/definitions/Pet", "#/components/schemas/Pet", "$defs/Pet"]
)
def test_a_reference_by_the_name_of_a_definition_is_read_with_a_finding(reference: str) -> None:
    document, made = repaired(
        {"properties": {"q": {"$ref": reference}}, "$defs": {"Pet": {"type": "string"}}}
    )

    assert document["properties"]["q"] == {"$ref": "#/$defs/Pet"}
    assert made == [("properties.q.$ref", "name")]


@pytest.mark.parametrize(
    "listed",
    [
        {"properties": {"q": {"$ref": "#/$defs/List%3Cstring%3E"}}, "$defs": {"List<string>": {"type": "array"}}},
        {"properties": {"q": {"$ref": "#/$defs/a~1b"}}, "$defs": {"a/b": {}}},
        {"properties": {"q": {"$ref": "#here"}}, "$defs": {"a": {"$anchor": "here"}}},
        {"properties": {"q": {"$dynamicRef": "#here"}}, "$defs": {"a": {"$dynamicAnchor": "here"}}},
        {"properties": {"q": {"$ref": "#/components/schemas/a"}}, "components": {"schemas": {"a": {}}}},
        {"properties": {"q": {"$ref": "#"}, "r": {"items": [{}]}, "s": {"exclusiveMinimum": True}}},
        {"$id": "https://x.example/s.json", "properties": {"q": {"$ref": "#/$defs/a"}}, "$defs": {"a": {}}},
        {"properties": {"default": {"default": {"$ref": "x"}}, "$ref": {"type": "string"}}, "x-ui": {"type": 5}},
        {"oneOf": [{"required": ["a"]}, {"required": ["b"]}], "not": {"required": ["c"]}},
    ],
)  # fmt: skip
def test_a_schema_without_flaws_is_unchanged(listed: dict[str, Any]) -> None:
    assert repaired(listed) == (listed, [])


@pytest.mark.parametrize("reference", ["#/components/schemas/a", "a"])
def test_what_a_reference_leads_to_is_repaired_where_no_keyword_has_a_schema(reference: str) -> None:
    listed = {
        "properties": {"q": {"$ref": reference}},
        "components": {"schemas": {"a": {"type": "int"}}},
    }

    document, made = repaired(listed)

    assert document["components"]["schemas"]["a"] == {"type": "integer"}
    assert ("components.schemas.a.type", "type") in made


@pytest.mark.parametrize(
    "listed",
    [
        {f"p{n}": {"$ref": f"#/$defs/p{n + 1}"} for n in range(1500)},
        {f"p{n}": {"$id": f"p{n}", "$ref": f"p{n + 1}"} for n in range(1500)},
        {f"p{n}": {"$id": f"p{n}", "$ref": f"p{(n + 1) % 1500}"} for n in range(1500)},
        {f"p{n}": {"$ref": f"#/x/{n}", "type": "?" * 20} for n in range(1500)},
    ],
)
def test_a_hostile_schema_is_repaired_in_linear_time(listed: dict[str, Any]) -> None:
    start = time.process_time()
    repairing.arguments({"$defs": listed, "x": [{"$ref": f"#/x/{n + 1}"} for n in range(1500)]})
    assert time.process_time() - start < 2


def test_alternatives_that_lead_to_the_same_alternatives_are_followed_once() -> None:
    one, two, three = ({"anyOf": [{"$ref": f"#/$defs/{name}"}] * 250} for name in "abc")
    start = time.process_time()
    _, made = repaired({**one, "$defs": {"a": two, "b": three, "c": {"type": "string"}}})
    assert time.process_time() - start < 2
    assert made == []


@pytest.mark.parametrize(
    ("listed", "code"),
    [
        (True, "form"), ([], "form"), ({"type": ["object", "null"]}, "form"), ({"type": None}, "form"),
        (None, "missing"), (False, "arguments"), ("string", "arguments"), (5, "arguments"),
        ({"type": "string", "minLength": 1}, "arguments"), ({"type": "array", "items": {}}, "arguments"),
        ({"enum": ["a"]}, "arguments"), ({"const": 5}, "arguments"),
        ({"oneOf": [{"type": "string"}, {"const": 5}]}, "arguments"), ({"allOf": [{"type": "string"}]}, "arguments"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}}, "arguments"), ({"$ref": "#"}, "circular"),
    ],
)  # fmt: skip
def test_a_schema_that_describes_no_object_accepts_any_arguments(listed: Any, code: str) -> None:
    document, made = repaired(listed)

    assert code in {found for _, found in made}
    assert document.get("type", "object") == "object"
    assert schema.violations(schema.canonical(document), {"a": 1}) == ()
