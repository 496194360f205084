"""Tests that JSON is parsed strictly: ambiguous documents are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolbelt.core import strict_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(VALUES)
def test_valid_json_parses_like_the_standard_library(value: Any):
    assert strict_json.read(json.dumps(value, ensure_ascii=False).encode(errors="replace"), 64) == json.loads(
        json.dumps(value, ensure_ascii=False).encode(errors="replace")
    )


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff",
        b"NaN",
        b"-Infinity",
        b"1e999",
        b'{"a":1,"a":1}',
        rb'"\ud800"',
        b"[1] 2",
        b"\xef\xbb\xbf1",
    ],
)
def test_invalid_or_ambiguous_json_is_refused(body: bytes):
    with pytest.raises(strict_json.UnreadableError) as raised:
        strict_json.read(body, 64)
    assert raised.value.code == "not-json"


@pytest.mark.parametrize(("depth", "is_read"), [(3, True), (4, False), (100_000, False)])
def test_json_that_is_nested_too_deeply_is_refused(depth: int, is_read: bool):
    body = b"[" * depth + b"]" * depth
    if is_read:
        assert strict_json.read(body, 3) == [[[]]]
    else:
        with pytest.raises(strict_json.UnreadableError) as raised:
            strict_json.read(body, 3)
        assert raised.value.code == "too-deep"


def test_sibling_brackets_and_brackets_in_strings_do_not_count_as_depth():
    assert strict_json.read(b'[[], {}, "[[[[[", []]', 2) == [[], {}, "[[[[[", []]
