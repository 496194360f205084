"""Tests of tool versions: when a tool has changed since its approval."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.core import building
from toolbelt.core import tool_versions

APPROVED = building.tool("git__push", description="Pushes.", input_schema='{"type":"object"}')


def test_a_tool_without_an_approval_never_counts_as_changed() -> None:
    assert not tool_versions.is_changed(APPROVED)


def test_an_approved_tool_is_unchanged() -> None:
    assert not tool_versions.is_changed(
        dataclasses.replace(APPROVED, approved=tool_versions.version(APPROVED))
    )


@pytest.mark.parametrize(
    "change",
    [
        {"description": "Pushes, and tells nobody."},
        {"input_schema": '{"type":"object","properties":{"force":{"type":"boolean"}}}'},
        {"approved": "sha256:0"},
        {"approved": "2:sha256:0"},
    ],
)
def test_a_changed_description_schema_or_approval_counts_as_a_change(change: dict[str, Any]) -> None:
    approved_tool = dataclasses.replace(APPROVED, approved=tool_versions.version(APPROVED))
    assert tool_versions.is_changed(dataclasses.replace(approved_tool, **change))


def test_an_approval_ignores_schema_formatting_and_the_local_name() -> None:
    upstream = dataclasses.replace(APPROVED, upstream_name="push")
    approved_tool = dataclasses.replace(upstream, approved=tool_versions.version(upstream))
    respelled = dataclasses.replace(approved_tool, key="vcs__push", input_schema='{ "type" : "object" }')
    assert not tool_versions.is_changed(respelled)


def test_an_approval_of_the_exact_text_without_a_number_is_still_valid() -> None:
    old = tool_versions.unnumbered_version(APPROVED)
    assert not tool_versions.is_changed(dataclasses.replace(APPROVED, approved=old))
    rejected = dataclasses.replace(APPROVED, approved=tool_versions.REJECTED + old)
    assert tool_versions.is_rejected(rejected)
    assert tool_versions.renumbered(rejected).approved == tool_versions.REJECTED + tool_versions.version(
        APPROVED
    )
    held = dataclasses.replace(
        APPROVED,
        description="Pulls.",
        approved=old,
        approved_version='{"description":"Pushes.","input_schema":{"type":"object"}}',
    )
    assert tool_versions.renumbered(held).approved == tool_versions.version(APPROVED)
    unknown = dataclasses.replace(APPROVED, approved="sha256:0")
    assert tool_versions.renumbered(unknown) == unknown
