"""Tests of grants: splitting tools_config, and switches that are off."""

from __future__ import annotations

import pytest

from tests.core import building
from toolbelt.core import grants
from toolbelt.core.rules import resolution

STORED = building.catalog_of("read push clock", toolkits={"repo": "read push", "all": "read push clock"})


def test_tools_config_is_split_into_switches_and_overrides() -> None:
    assert grants.split(STORED, {"repo": True, "clock": False}) == ({"repo": True}, {"clock": False})


@pytest.mark.parametrize("value", [None, 1, 0, "true", [], {}])
def test_values_that_are_not_booleans_count_as_unset(value: object) -> None:
    assert grants.split(STORED, {"repo": value, "read": value}) == ({}, {})


def test_unknown_keys_are_ignored() -> None:
    assert grants.split(STORED, {"ghost": True, "Repo": True}) == ({}, {})


@pytest.mark.parametrize(
    ("switches", "named"),
    [
        ({}, None),
        ({"repo": True, "all": True}, None),
        ({"repo": True, "all": False}, "all"),
        ({"all": False, "repo": False}, "repo"),
    ],
)
def test_the_first_off_switch_of_a_tool_is_named(switches: dict[str, bool], named: str | None) -> None:
    assert off_switch(switches, "read") == named


def test_an_off_switch_of_other_tools_does_not_apply() -> None:
    assert off_switch({"repo": False}, "clock") is None


def off_switch(switches: dict[str, bool], tool: str) -> str | None:
    snapshot = building.snapshot(STORED, building.agent(switches=switches))
    decision = resolution.decide(resolution.build_context(snapshot), tool)
    return decision.origin.name if decision.code == "switch-off" else None
