"""Tests that a model gets as JSON what a tool answered as MCP."""

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
def test_an_answer_is_said_in_json(result: dict[str, Any], content: Any) -> None:
    assert results.content(result) == content


def test_a_failure_is_told_in_the_tools_own_words_without_what_cannot_be_seen() -> None:
    with pytest.raises(contract.ToolError, match=r"^no such file$"):
        results.read({"isError": True, "content": [{"type": "text", "text": "no such\u200b file"}]})
    with pytest.raises(contract.ToolError, match="without a message"):
        results.read({"isError": True, "content": []})
