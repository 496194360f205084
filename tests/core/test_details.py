"""A tool's details are read from any row, and invalid ones are refused."""

from __future__ import annotations

from typing import Any

import pytest

from toolbelt.core import details


@pytest.mark.parametrize("text", ["", "[]", "{", '{"outputSchema":3,"icons":{"src":"x"},"_meta":[]}'])
def test_what_is_not_as_it_should_be_is_left_out(text: str) -> None:
    assert details.read(text) == details.Details()


def test_reserved_keys_and_icons_from_elsewhere_do_not_come_through() -> None:
    found = details.read('{"icons":[{"src":"http://x"},{"src":"https://x"}],"_meta":{"toolbelt/a":1,"b":2}}')

    assert found.icons == ({"src": "https://x"},)
    assert found.meta == {"b": 2}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"note": 1}, "'note' is not one of outputSchema, icons, _meta"),
        ({"outputSchema": {"type": "array"}}, "outputSchema: a tool takes named"),
        ({"icons": [{"src": "http://x"}]}, "icons: a list"),
        ({"icons": 3}, "icons: a list"),
        ({"_meta": {"toolbelt/toolkits": []}}, "_meta: a mapping without"),
        ({"_meta": 3}, "_meta: a mapping without"),
    ],
)
def test_details_that_are_not_sound_are_refused(given: dict[str, Any], said: str) -> None:
    assert (details.problem("tool", given) or "").startswith(said)


def test_sound_details_are_no_problem() -> None:
    assert (
        details.problem("tool", {"outputSchema": {}, "icons": [{"src": "https://x"}], "_meta": {"a": 1}})
        is None
    )


@pytest.mark.parametrize(
    ("kind", "given", "said"),
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
def test_details_of_other_kinds_that_are_not_sound_are_refused(
    kind: str, given: dict[str, Any], said: str
) -> None:
    assert (details.problem(kind, given) or "").startswith(said)


def test_sound_details_of_other_kinds_are_no_problem() -> None:
    arguments = [{"name": "topic", "title": "T", "description": "d", "required": True}]
    annotations = {"audience": ["user"], "priority": 0.5}
    assert details.problem("prompt", {"arguments": arguments}) is None
    assert (
        details.problem("resource", {"name": "a", "mimeType": "text/plain", "annotations": annotations})
        is None
    )
