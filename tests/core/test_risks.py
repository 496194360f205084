"""A tool's risk, from its annotations."""

from __future__ import annotations

import pytest

from toolbelt.core import catalog, risks


@pytest.mark.parametrize(
    ("annotations", "risk"),
    [
        ("", "destructive"),
        ("{}", "destructive"),
        ("[]", "destructive"),
        ("{not json", "destructive"),
        ('{"readOnlyHint": true}', "read-only"),
        ('{"readOnlyHint": true, "destructiveHint": true}', "read-only"),
        ('{"readOnlyHint": "yes"}', "destructive"),
        ('{"readOnlyHint": false}', "destructive"),
        ('{"destructiveHint": false}', "writes"),
        ('{"destructiveHint": true}', "destructive"),
    ],
)
def test_a_tool_that_says_nothing_good_of_itself_is_destructive(annotations: str, risk: str) -> None:
    assert risks.of(catalog.Tool(key="x", annotations=annotations)) == risk
