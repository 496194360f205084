"""Tests that a converted schema keeps its meaning, and is refused if there is no equivalent."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats import documents
from toolbelt.formats.json_schema import forms, keywords

Schema = dict[str, Any]

POINT: Schema = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
TREE: Schema = {"type": "object", "properties": {"kids": {"items": {"$ref": "#/$defs/tree"}}}}


def as_root(schema: Schema) -> Schema:
    return forms.to_object(schema, keywords.BEYOND_PROPERTIES)


def rooted(**schema: Any) -> Schema:
    return as_root(schema)


FORMS = (as_root, forms.with_items, forms.with_enums, forms.inline_references)


def test_the_root_schema_gets_the_object_type() -> None:
    assert rooted() == {"type": "object", "properties": {}}
    assert rooted(**POINT) == POINT


def test_a_reference_at_the_root_is_resolved() -> None:
    converted = rooted(**{"$ref": "#/$defs/p", "$defs": {"p": {**POINT, "title": "P"}}, "title": "Args"})
    assert converted == {**POINT, "title": "Args", "$defs": {"p": {**POINT, "title": "P"}}}


def test_all_of_at_the_root_is_merged() -> None:
    also = {"properties": {"y": {"type": "string"}}, "required": ["y", "x"]}
    assert rooted(allOf=[POINT, also]) == {
        "type": "object",
        "properties": {"x": {"type": "integer"}, "y": {"type": "string"}},
        "required": ["x", "y"],
    }


def test_all_of_merges_the_constraints_of_a_shared_property() -> None:
    bounds = [{"properties": {"x": {"minimum": 1}}}, {"properties": {"x": {"maximum": 5}}}]
    assert rooted(allOf=bounds)["properties"] == {"x": {"minimum": 1, "maximum": 5}}


def test_a_choice_with_a_single_option_is_unwrapped() -> None:
    assert rooted(anyOf=[{"oneOf": [POINT]}]) == POINT


@pytest.mark.parametrize(
    ("schema", "because"),
    [
        ({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, "it has anyOf at its top"),
        ({"not": {"required": ["a"]}, "enum": [{}]}, "it has enum and not at its top"),
        ({"$ref": "#/$defs/gone"}, "it refers to #/$defs/gone, which is not in it"),
        ({"$ref": "#here"}, "it refers to #here, which is not a path within it"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}, "which refers to itself"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}}, "it does not describe an object"),
        (
            {"allOf": [{"minProperties": 1}, {"minProperties": 2}]},
            "it has two values of minProperties in one",
        ),
        (
            {"allOf": [{"additionalProperties": False, **POINT}], "properties": {"y": {}}},
            "its additionalProperties does not cover the properties beside it",
        ),
        ({"allOf": [{"if": {"required": ["a"]}}], "then": False}, "two values of if, then in one place"),
        (
            {"allOf": [{"unevaluatedProperties": False}, {"anyOf": [POINT, {}]}]},
            "its unevaluatedProperties does not cover the properties beside it",
        ),
        (
            {
                "allOf": [{"properties": {"p": POINT}}],
                "properties": {"q": {"$ref": "#/allOf/0/properties/p"}},
            },
            "it refers to #/allOf/0/properties/p, which is not in it",
        ),
    ],
)
def test_a_schema_without_an_equivalent_is_refused_with_the_reason(schema: Schema, because: str) -> None:
    with pytest.raises(keywords.UnsupportedSchemaError) as refused:
        rooted(**schema)
    assert because in str(refused.value)


def test_unevaluated_properties_still_covers_all_merged_properties() -> None:
    converted = rooted(allOf=[POINT], properties={"y": {}}, unevaluatedProperties=False)
    assert converted["unevaluatedProperties"] is False
    assert converted["properties"].keys() == {"x", "y"}


def test_arrays_without_items_get_an_empty_items_schema() -> None:
    converted = forms.with_items(
        {
            "properties": {
                "a": {"type": "array"},
                "b": {"type": ["array", "null"], "items": True},
                "c": True,
                "d": False,
            }
        }
    )
    assert converted["properties"] == {
        "a": {"type": "array", "items": {}},
        "b": {"type": ["array", "null"], "items": {}},
        "c": {},
        "d": {"not": {}},
    }


def test_const_becomes_an_enum_with_one_value() -> None:
    converted = forms.with_enums(
        {"properties": {"const": {"const": 1}, "kind": {"const": "a", "enum": ["a", "b"]}}}
    )
    assert converted["properties"] == {"const": {"enum": [1]}, "kind": {"enum": ["a"]}}
    with pytest.raises(keywords.UnsupportedSchemaError):
        forms.with_enums({"const": True, "enum": [1]})


def test_references_are_inlined_together_with_their_sibling_keywords() -> None:
    converted = forms.inline_references(
        {
            "properties": {
                "a": {"$ref": "#/$defs/p~1q", "description": "Where."},
                "b": {"$ref": "#/properties/a"},
            },
            "$defs": {"p/q": POINT, "unused": {}},
        }
    )
    assert converted == {
        "properties": {"a": {**POINT, "description": "Where."}, "b": {**POINT, "description": "Where."}}
    }


def test_recursive_schemas_keep_their_references() -> None:
    converted = forms.inline_references(
        {"properties": {"t": {"$ref": "#/$defs/tree"}}, "$defs": {"tree": TREE, "unused": POINT}}
    )
    assert converted == {"properties": {"t": TREE}, "$defs": {"tree": TREE}}


def test_keywords_beside_a_recursive_reference_are_refused() -> None:
    fuller = {"properties": {"kids": {"items": {"$ref": "#/$defs/tree", "minProperties": 1}}}}
    with pytest.raises(
        keywords.UnsupportedSchemaError, match="it has minProperties beside a recursive reference"
    ):
        forms.inline_references({"properties": {"t": {"$ref": "#/$defs/tree"}}, "$defs": {"tree": fuller}})


def test_a_property_named_ref_is_not_taken_for_a_reference() -> None:
    schema = {"properties": {"$ref": {"type": "string"}, "const": {"$ref": "#/properties/$ref"}}}
    assert forms.inline_references(schema)["properties"]["const"] == {"type": "string"}


def test_a_schema_that_expands_exponentially_is_refused() -> None:
    levels = {f"l{n}": {"allOf": [{"$ref": f"#/$defs/l{n + 1}"}] * 10} for n in range(30)}
    bomb = {"properties": {"a": {"$ref": "#/$defs/l0"}}, "$defs": {**levels, "l30": {"type": "string"}}}
    with pytest.raises(keywords.UnsupportedSchemaError, match="more than 500000 characters"):
        forms.inline_references(bomb)
    with pytest.raises(keywords.UnsupportedSchemaError, match="more than 500000 characters"):
        rooted(**{**bomb, "$ref": "#/$defs/l0"})


DEFINED: Schema = {
    "p": POINT,
    "q": {"properties": {"x": {"maximum": 1}, "y": {"type": "string"}}, "required": ["y"]},
    "closed": {"properties": {"x": {}, "y": {}}, "additionalProperties": False},
    "rest": {"properties": {"x": {}}, "unevaluatedProperties": False},
    "list": {"contains": {"type": "integer"}, "prefixItems": [{"type": "integer"}]},
    "tree": TREE,
}
REFERENCES = [{"$ref": f"#/$defs/{name}"} for name in DEFINED]
PARTS: list[Schema] = [
    {"minContains": 2},
    {"items": {"type": "string"}},
    {"minProperties": 1, "description": "Some."},
    {"properties": {"x": {"type": "string"}, "z": False}},
    {"properties": {"x": {"minimum": 1}}, "unevaluatedProperties": False},
    {"patternProperties": {"^[xz]": {"type": "integer"}}, "additionalProperties": False},
    {"if": {"required": ["x"]}, "then": {"required": ["y"]}},
    {"then": {"required": ["z"]}, "else": False},
    {"const": 1},
    {"enum": [1, "a", [1, 1], {"x": 1}]},
    {"type": ["array", "string"]},
    {"type": "array", "items": True},
    {"required": ["x"]},
]
VALUES = [
    1,
    5,
    True,
    "a",
    None,
    [],
    [1],
    [1, 1],
    [1, "a"],
    ["a"],
    {},
    {"x": 1},
    {"x": 5, "y": "a"},
    {"y": "a"},
]
VALUES += [{"x": 1, "y": "a"}, {"z": 1, "x": 1}, {"kids": [{}]}, {"kids": [{"kids": 1}]}, {"kids": [1]}]

parts = st.sampled_from([*REFERENCES, *PARTS])
merging = st.lists(st.sampled_from([*REFERENCES, *PARTS]), min_size=1, max_size=3).map(
    lambda some: {word: value for part in some for word, value in part.items()}
)
combined = st.one_of(
    merging,
    st.fixed_dictionaries({"allOf": st.lists(merging, min_size=1, max_size=2)}),
    st.tuples(merging, st.fixed_dictionaries({"allOf": st.lists(parts, min_size=1, max_size=2)})).map(
        lambda both: {**both[0], **both[1]}
    ),
    st.fixed_dictionaries({"oneOf": st.lists(merging, min_size=1, max_size=2)}),
)
schemas = st.one_of(
    combined,
    st.dictionaries(st.sampled_from("xy"), combined, min_size=1).map(lambda named: {"properties": named}),
)
arguments = [{}, *({"x": value} for value in VALUES), *({"x": 1, "y": value} for value in VALUES), {"z": 1}]
arguments += [{"x": 1, "y": "a", "z": 1}, {"x": 5, "y": "a", "z": "a"}, {"kids": [{"kids": [1]}]}]


def accepted_arguments(schema: Schema) -> list[Any]:
    validator = jsonschema.Draft202012Validator(schema)
    return [value for value in arguments if validator.is_valid(value)]


@pytest.mark.parametrize("form", FORMS)
@given(schema=schemas)
def test_every_form_accepts_the_same_arguments_as_the_original_schema(form: Any, schema: Schema) -> None:
    whole = {**schema, "$defs": DEFINED}
    before = copy.deepcopy(whole)
    try:
        converted = form(whole)
    except keywords.UnsupportedSchemaError:
        return
    assert accepted_arguments(converted) == accepted_arguments(whole), converted
    assert whole == before


@pytest.mark.parametrize("form", FORMS)
def test_every_real_schema_can_be_converted_to_every_form(form: Any) -> None:
    for tool in documents.real_tools():
        converted = form(tool["input_schema"])
        if converted != tool["input_schema"]:
            jsonschema.Draft202012Validator.check_schema(converted)
