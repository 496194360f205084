"""Tests that stored details are read leniently, and that invalid details are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolbelt.core import details


@pytest.mark.parametrize("text", ["", "[]", "{", '{"outputSchema":3,"icons":{"src":"x"},"_meta":[]}'])
def test_invalid_stored_details_are_ignored(text: str) -> None:
    assert details.read(text) == details.Details()


def test_reserved_meta_keys_and_icons_without_https_are_dropped() -> None:
    parsed = details.read('{"icons":[{"src":"http://x"},{"src":"https://x"}],"_meta":{"toolbelt/a":1,"b":2}}')

    assert parsed.icons == ({"src": "https://x"},)
    assert parsed.meta == {"b": 2}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"note": 1}, "'note' is not one of outputSchema, icons, _meta"),
        ({"outputSchema": {"type": "array"}}, "outputSchema: a tool takes named"),
        ({"icons": [{"src": "http://x"}]}, "icons: a list"),
        ({"icons": 3}, "icons: a list"),
        ({"_meta": {"toolbelt/toolkits": []}}, "_meta: a mapping without"),
        ({"_meta": 3}, "_meta: a mapping without"),
    ],
)
def test_invalid_tool_details_are_refused(given: dict[str, Any], expected: str) -> None:
    assert (details.problem("tool", given) or "").startswith(expected)


def test_valid_tool_details_have_no_problem() -> None:
    assert (
        details.problem("tool", {"outputSchema": {}, "icons": [{"src": "https://x"}], "_meta": {"a": 1}})
        is None
    )


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        ("prompt", {"outputSchema": {}}, "'outputSchema' is not one of arguments"),
        ("prompt", {"arguments": [{"title": "x"}]}, "arguments: a list"),
        ("prompt", {"arguments": [{"name": "x", "required": "yes"}]}, "arguments: a list"),
        ("prompt", {"arguments": [{"name": "x", "note": "y"}]}, "arguments: a list"),
        ("resource", {"mimeType": 3}, "mimeType: a text"),
        ("resource", {"annotations": {"lastModified": "x"}}, "annotations: a mapping"),
        ("template", {"annotations": {"priority": 3}}, "annotations: a mapping"),
        ("elicitation", {"name": "x"}, "'name' is not one of nothing"),
    ],
)
def test_invalid_details_of_other_kinds_are_refused(kind: str, given: dict[str, Any], expected: str) -> None:
    assert (details.problem(kind, given) or "").startswith(expected)


def test_valid_details_of_other_kinds_have_no_problem() -> None:
    arguments = [{"name": "topic", "title": "T", "description": "d", "required": True}]
    annotations = {"audience": ["user"], "priority": 0.5}
    assert details.problem("prompt", {"arguments": arguments}) is None
    assert (
        details.problem("resource", {"name": "a", "mimeType": "text/plain", "annotations": annotations})
        is None
    )


@pytest.mark.parametrize(
    ("visibility", "expected"),
    [
        (["app"], True),
        (["app", "model"], False),
        (["model"], False),
        ([], False),
        ("app", False),
        (["other"], False),
    ],
)
def test_a_tool_is_for_apps_only_if_its_server_names_apps_and_not_models(
    visibility: Any, expected: bool
) -> None:
    assert details.is_for_apps_only(json.dumps({"_meta": {"ui": {"visibility": visibility}}})) is expected
    assert not details.is_for_apps_only(json.dumps({"_meta": {"visibility": visibility}}))


@pytest.mark.parametrize("text", ["", "{", '"visibility"', '{"_meta":{"ui":["visibility"]}}'])
def test_details_that_cannot_be_read_keep_no_tool_from_models(text: str) -> None:
    assert not details.is_for_apps_only(text)
