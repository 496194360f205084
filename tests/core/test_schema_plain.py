"""Tests that the plain check of schemas accepts only what the meta-schema accepts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolbelt import locations
from toolbelt.core import schema, schema_drafts
from toolbelt.core.schema import plain, validator

CATALOGS = locations.ASSETS / "fixtures/demo/catalogs"
# Keywords of a schema, and values that are valid or invalid for them.
KEYWORDS = st.sampled_from(
    [*plain._VALUES, *plain._NAMING, *plain._NESTING, *plain._LISTING, "$id", "pattern", "x"]
)
LEAVES = st.sampled_from(
    [
        True,
        False,
        None,
        0,
        1,
        -1,
        1.5,
        2.0,
        "",
        "a",
        "object",
        "string",
        "(",
        [],
        ["a"],
        ["a", "a"],
        [1],
        ["null"],
    ]
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.dictionaries(KEYWORDS, inner, max_size=4) | st.lists(inner, max_size=3),
    max_leaves=20,
)


def is_valid(described: Any) -> bool:
    return next(validator.schema_errors(described, schema.SCHEMA_STEPS), None) is None


@given(st.dictionaries(KEYWORDS, VALUES, max_size=5))
def test_the_plain_check_accepts_only_schemas_that_the_meta_schema_accepts(described: dict[str, Any]) -> None:
    if plain.is_valid(described):
        assert is_valid(described)


@pytest.mark.parametrize(
    "value", [None, True, 0, -1, 1.5, "", "string", [], ["a"], ["a", "a"], [{}], [1], {}, {"a": {}}, {"a": 1}]
)
def test_the_plain_check_of_each_keyword_is_as_strict_as_the_meta_schema(value: Any) -> None:
    accepted_by_mistake = [
        described
        for keyword in [*plain._VALUES, *plain._NAMING, *plain._NESTING, *plain._LISTING]
        for described in ({keyword: value}, {"properties": {"a": {"items": {keyword: value}}}})
        if plain.is_valid(described) and not is_valid(described)
    ]
    assert accepted_by_mistake == []


def test_the_plain_check_accepts_most_schemas_of_real_servers() -> None:
    tools = [tool for file in CATALOGS.glob("*.json") for tool in json.loads(file.read_text())["tools"]]
    accepted = [plain.is_valid(schema_drafts.current(tool["inputSchema"])) for tool in tools]
    assert sum(accepted) > 0.9 * len(accepted)


def test_the_plain_check_refuses_schemas_that_are_too_large() -> None:
    assert plain.is_valid({"required": [str(number) for number in range(plain.MAX_LENGTH)]})
    assert not plain.is_valid({"required": [str(number) for number in range(plain.MAX_LENGTH + 1)]})
    assert not plain.is_valid({"properties": {str(number): {} for number in range(plain.MAX_PARTS)}})
