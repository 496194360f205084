"""Tests of the patterns that providers are sent, and of what a schema has instead of the others."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolbelt.core.schema import validator
from toolbelt.formats.json_schema import patterns

FOREIGN = r"^\p{L}+$"


@pytest.mark.parametrize(
    "pattern", [r"^[\w\-]+$", r"^(?!\.)[a-z.]+$", r"^(a)\1$", r"^\/a$", "^--[a-z]+$", "^[äö]$"]
)
def test_a_pattern_that_all_engines_take_is_portable(pattern: str) -> None:
    assert patterns.is_portable(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        r"\p{L}", r"\u{1F600}", r"\cA", "[]", r"(?<q>a)\k<q>", "(?P<q>a)", "a++b", "(?>a)", "a(?i)b", "(?i:a)",
        r"\Aa\Z", r"a\z", r"\h", "[[:alpha:]]", "[a--b]", "[a", "/^a$/", "a{99999999999999999999}", "a" * 501,
        "(?=x)" + "(" * 240 + ")" * 240 + ")",
    ],
)  # fmt: skip
def test_a_pattern_that_an_engine_would_refuse_is_not_portable(pattern: str) -> None:
    assert not patterns.is_portable(pattern)


@given(st.text(st.sampled_from("ab[]()\\{},1-^$|*+?/.:<=!pdsuiP&")))
def test_a_translated_pattern_matches_what_python_matches_if_both_take_it(pattern: str) -> None:
    compiled = validator.linear(pattern)
    if compiled is None or not patterns.is_portable(pattern):
        return
    for text in ("", "a", "ab", "b]", "1", "-", "{1}", "\\"):
        assert (compiled.search(text) is None) == (re.search(pattern, text, re.ASCII) is None), text


def test_a_pattern_that_is_not_sent_is_in_the_description() -> None:
    schema = {"properties": {"a": {"pattern": FOREIGN}, "b": {"pattern": FOREIGN, "description": "The b."}}}

    properties = patterns.without(schema)["properties"]

    assert properties == {
        "a": {"description": f"Pattern: {FOREIGN}"},
        "b": {"description": f"The b.\nPattern: {FOREIGN}"},
    }
    assert patterns.of(schema) == [FOREIGN]


def test_a_schema_whose_patterns_are_all_sent_is_unchanged() -> None:
    schema = {"properties": {"pattern": {"pattern": "^a$"}}, "patternProperties": {"^(?!x)": {}}}

    assert patterns.without(schema) == schema
    assert patterns.of(schema) == []


@pytest.mark.parametrize(
    ("schema", "sent"),
    [
        (
            {"patternProperties": {FOREIGN: {}, "^a$": {}}, "additionalProperties": False},
            {"patternProperties": {"^a$": {}}},
        ),
        (
            {"allOf": [{"patternProperties": {FOREIGN: {}}}], "unevaluatedProperties": False},
            {"allOf": [{"patternProperties": {}}]},
        ),
        ({"not": {"pattern": FOREIGN}}, {}),
        ({"if": {"pattern": FOREIGN}, "then": {"maxLength": 1}, "else": {}}, {}),
        (
            {"contains": {"pattern": FOREIGN}, "minContains": 1, "maxContains": 2},
            {"contains": {"description": f"Pattern: {FOREIGN}"}, "minContains": 1},
        ),
        (
            {"oneOf": [{"pattern": FOREIGN}, {"type": "string"}]},
            {"anyOf": [{"description": f"Pattern: {FOREIGN}"}, {"type": "string"}]},
        ),
    ],
)
def test_a_schema_without_a_pattern_refuses_nothing_more(
    schema: dict[str, Any], sent: dict[str, Any]
) -> None:
    assert patterns.without(schema) == sent
