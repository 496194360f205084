"""Tests that a tool's risk is derived from its annotations."""

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
def test_a_tool_counts_as_destructive_unless_it_states_otherwise(annotations: str, risk: str) -> None:
    assert risks.of(catalog.Tool(key="x", annotations=annotations)) == risk


@pytest.mark.parametrize(
    ("annotations", "stated"),
    [
        ("", "not stated"),
        ("{not json", "not stated"),
        ('{"readOnlyHint": false}', "not stated"),
        ('{"readOnlyHint": true}', "read-only"),
        ('{"destructiveHint": false}', "writes"),
        ('{"destructiveHint": true}', "destructive"),
    ],
)
def test_a_risk_implied_only_by_the_default_is_not_stated(annotations: str, stated: str) -> None:
    assert risks.stated(catalog.Tool(key="x", annotations=annotations)) == stated


def test_a_prompt_is_stated_as_read_only() -> None:
    assert risks.stated(catalog.Tool(key="x", kind="prompt")) == "read-only"
