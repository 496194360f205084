"""Tests that the navigation counts the tools to review by the rule that the pages apply."""

from __future__ import annotations

import itertools

import pytest

from tests import factories
from toolbelt.core import tool_versions
from toolbelt.store import catalog, counts

pytestmark = pytest.mark.django_db


def test_the_query_counts_exactly_the_tools_that_await_review() -> None:
    plugin = factories.plugin("files")
    combinations = itertools.product(
        (True, False),
        ("", "sha256:0", f"{tool_versions.REJECTED}sha256:0"),
        (None, {}, {"description": "Read a file."}),
        (True, False),
        (True, False),
        (plugin, None),
    )
    counted = []
    for number, (seen, approved, approved_version, blocked, retired, owner) in enumerate(combinations):
        before = counts.count().to_review
        factories.tool(
            f"tool_{number:03}",
            seen=seen,
            approved=approved,
            approved_version=approved_version,
            blocked=blocked,
            retired=retired,
            plugin=owner,
        )
        counted.append(counts.count().to_review - before)

    tools = catalog.load().tools
    assert counted == [tool_versions.awaits_review(tools[key]) for key in sorted(tools)]
    assert {0, 1} == set(counted)
