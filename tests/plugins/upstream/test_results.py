"""Tests that the MCP result of a tool becomes JSON for the model."""

from __future__ import annotations

from typing import Any

import pytest

from toolbelt.plugins import contract
from toolbelt.plugins.upstream import results

TEXT = {"type": "text", "text": "one"}
IMAGE = {"type": "image", "data": "AA==", "mimeType": "image/png", "_meta": {"a": 1}}


@pytest.mark.parametrize(
    ("result", "content"),
    [
        ({"content": [TEXT]}, "one"),
        ({"content": [TEXT, {"type": "text", "text": "two"}]}, ["one", "two"]),
        ({"content": []}, ""),
        ({"content": [TEXT], "structuredContent": {"n": 1}}, {"n": 1}),
        (
            {"content": [TEXT, IMAGE]},
            {"content": [TEXT, {"type": "image", "data": "AA==", "mimeType": "image/png"}]},
        ),
        (
            {"content": [IMAGE], "structuredContent": {"n": 1}},
            {
                "content": [{"type": "image", "data": "AA==", "mimeType": "image/png"}],
                "structuredContent": {"n": 1},
            },
        ),
        (
            {"content": [{"type": "resource", "resource": {"uri": "file:///a", "text": "x", "_meta": {}}}]},
            {"content": [{"type": "resource", "resource": {"uri": "file:///a", "text": "x"}}]},
        ),
    ],
)
def test_a_result_is_converted_to_json(result: dict[str, Any], content: Any) -> None:
    assert results.content(result) == content


def test_a_failure_has_the_tools_message_without_hidden_characters() -> None:
    with pytest.raises(contract.ToolError, match=r"^no such file$"):
        results.read({"isError": True, "content": [{"type": "text", "text": "no such\u200b file"}]})
    with pytest.raises(contract.ToolError, match="without a message"):
        results.read({"isError": True, "content": []})


def test_a_structured_result_of_a_new_session_has_its_note() -> None:
    result = results.in_new_session({"content": [TEXT], "structuredContent": {"n": 1}})

    assert results.content(result) == {"result": {"n": 1}, "note": results.NEW_SESSION}
