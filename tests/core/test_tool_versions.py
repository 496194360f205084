"""What an approval holds a tool to: its version, and when it has changed."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.core import building
from toolbelt.core import tool_versions

APPROVED = building.tool("git__push", description="Pushes.", input_schema='{"type":"object"}')


def test_a_tool_that_nobody_approved_is_not_held_to_anything() -> None:
    assert not tool_versions.is_changed(APPROVED)


def test_a_tool_is_as_it_was_approved() -> None:
    assert not tool_versions.is_changed(
        dataclasses.replace(APPROVED, approved=tool_versions.version(APPROVED))
    )


@pytest.mark.parametrize(
    "change",
    [
        {"description": "Pushes, and tells nobody."},
        {"input_schema": '{"type":"object","properties":{"force":{"type":"boolean"}}}'},
        {"approved": "sha256:0"},
    ],
)
def test_a_changed_description_or_schema_is_a_change_since_the_approval(change: dict[str, Any]) -> None:
    held = dataclasses.replace(APPROVED, approved=tool_versions.version(APPROVED))
    assert tool_versions.is_changed(dataclasses.replace(held, **change))


def test_an_approval_holds_whatever_the_spelling_of_the_schema_and_the_local_name() -> None:
    upstream = dataclasses.replace(APPROVED, upstream_name="push")
    held = dataclasses.replace(upstream, approved=tool_versions.version(upstream))
    respelled = dataclasses.replace(held, key="vcs__push", input_schema='{ "type" : "object" }')
    assert not tool_versions.is_changed(respelled)
