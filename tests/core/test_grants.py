"""tools_config: the flat form parted, and switches that are off."""

from __future__ import annotations

import pytest

from tests.core import building
from toolbelt.core import grants

STORED = building.catalog_of("read push clock", toolkits={"repo": "read push", "all": "read push clock"})


def test_the_flat_form_is_parted_into_switches_and_overrides() -> None:
    assert grants.split(STORED, {"repo": True, "clock": False}) == ({"repo": True}, {"clock": False})


@pytest.mark.parametrize("value", [None, 1, 0, "true", [], {}])
def test_reading_takes_what_is_no_boolean_for_unset(value: object) -> None:
    assert grants.split(STORED, {"repo": value, "read": value}) == ({}, {})


def test_reading_passes_over_keys_that_name_nothing() -> None:
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
def test_the_first_switch_that_is_off_is_named(switches: dict[str, bool], named: str | None) -> None:
    assert grants.switch_off_over(STORED, building.agent(switches=switches), "read") == named


def test_a_switch_over_other_tools_says_nothing() -> None:
    assert grants.switch_off_over(STORED, building.agent(switches={"repo": False}), "clock") is None
