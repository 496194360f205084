"""Tests that missing required arguments are filled in from the defaults of the schema."""

from __future__ import annotations

import time
from typing import Any

import pytest

from toolbelt.core import schema

TYPE = {"type": "string", "enum": ["png", "jpeg"], "default": "png"}


def object_of(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required}


@pytest.mark.parametrize(
    ("described", "given", "filled"),
    [
        (object_of(["type"], type=TYPE), {}, {"type": "png"}),
        (object_of(["type"], type=TYPE), {"type": "jpeg", "other": 1}, {"type": "jpeg", "other": 1}),
        # A given value is kept, and refused later if it is invalid.
        (object_of(["type"], type=TYPE), {"type": None}, {"type": None}),
        # Optional arguments are left to the server, and those without a default to the model.
        (object_of([], type=TYPE), {}, {}),
        (object_of(["type"], type={"type": "string"}), {}, {}),
        (object_of(["on"], on={"default": None}), {}, {"on": None}),
        (object_of([], inner=object_of(["type"], type=TYPE)), {"inner": {}}, {"inner": {"type": "png"}}),
        (object_of([], inner=object_of(["type"], type=TYPE)), {}, {}),
        (
            object_of(["inner"], inner={**object_of(["type"], type=TYPE), "default": {"a": 1}}),
            {},
            {"inner": {"a": 1, "type": "png"}},
        ),
        (object_of(["type"], type=TYPE), [], []),
        (object_of(["type"], type=True), {}, {}),
        ({"properties": [], "required": {}}, {}, {}),
    ],
)
def test_a_required_argument_with_a_default_is_filled_in(described: Any, given: Any, filled: Any) -> None:
    assert schema.filled(schema.canonical(described), given) == filled


def test_filling_in_mutates_neither_the_arguments_nor_the_defaults() -> None:
    text = schema.canonical(object_of(["list"], list={"default": [{}]}))
    given: dict[str, Any] = {}

    schema.filled(text, given)["list"][0]["changed"] = True

    assert given == {}
    assert schema.filled(text, {}) == {"list": [{}]}


def test_filling_in_a_deeply_nested_schema_takes_bounded_time() -> None:
    described: dict[str, Any] = object_of(["type"], type=TYPE)
    for _ in range(60):
        described = {**object_of(["a", "b"], a=described, b={"default": {"a": [0] * 500}}), "default": {}}
    start = time.process_time()

    filled = schema.filled(schema.canonical(described), {})

    assert filled["a"]["a"]["b"] == {"a": [0] * 500}
    assert time.process_time() - start < 10
