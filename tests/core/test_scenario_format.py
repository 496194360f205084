"""Tests of the scenario format: invalid scenarios are reported, and comments are ignored."""

from __future__ import annotations

from typing import Any

import pytest

from toolbelt.core import scenario_format

VALID: dict[str, Any] = {"id": "x", "belt": {}, "steps": []}


def problems(**keys: Any) -> list[str]:
    return [f"{expected}; {got}" for expected, got in scenario_format.of_scenario({**VALID, **keys})]


def test_a_scenario_can_have_comments_and_optional_keys() -> None:
    assert problems() == []
    assert (
        problems(note="Why.", **{"from": "seed 1"}, ticket="OPS-7", lenient=True, now="2031-05-04T14:00:00Z")
        == []
    )
    assert problems(steps=None, expect_error={"path": "tools.x.key"}) == []


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"id": ""}, "an id, which names it; ''"),
        ({"id": 5}, "an id, which names it; 5"),
        ({"step": []}, "a key that a scenario has; step (did you mean steps?)"),
        ({"expect_eror": {}}, "a key that a scenario has; expect_eror (did you mean expect_error?)"),
        ({"Lenient": True}, "a key that a scenario has; Lenient (did you mean lenient?)"),
        ({"belt": ["tools"]}, "a belt, by section; ['tools']"),
        ({"belt": None}, "a belt, by section; None"),
        ({"lenient": "yes"}, "lenient: true or false; 'yes'"),
        ({"identical_calls": True}, "identical_calls: a number of calls, 0 for no limit; True"),
        ({"identical_calls": -1}, "identical_calls: a number of calls, 0 for no limit; -1"),
        ({"now": "at noon"}, "now: a time with its zone, such as 2031-05-04T14:00:00Z; 'at noon'"),
        ({"steps": {"surface": {}}}, "a list of steps; {'surface': {}}"),
        ({"steps": 5}, "a list of steps; 5"),
        ({"expect_error": None}, "expect_error with a path, and nothing else; None"),
        ({"expect_error": {}}, "expect_error with a path, and nothing else; {}"),
        (
            {"expect_error": {"path": "tools", "message": "m"}},
            "expect_error with a path, and nothing else; {'path': 'tools', 'message': 'm'}",
        ),
        (
            {"expect_error": {"path": "tools"}, "steps": [{"surface": {"agent": "ada"}}]},
            "no steps beside expect_error; 1",
        ),
    ],
)
def test_keys_and_values_outside_the_format_are_reported(keys: dict[str, Any], problem: str) -> None:
    assert problems(**keys) == [problem]


def test_a_scenario_requires_an_id_and_a_belt() -> None:
    assert list(scenario_format.of_scenario({"steps": []})) == [
        ("an id, which names it", "none"),
        ("a belt, by section", "none"),
    ]


@pytest.mark.parametrize(
    ("scenario", "has_expectations"),
    [
        ({}, False),
        ({"steps": []}, False),
        ({"expect_error": {"path": "x"}}, True),
        ({"steps": [{"surface": {}}]}, False),
        ({"steps": [{"surface": {}, "expect": {}}]}, False),
        ({"steps": [{"surface": {}, "expect": {"active": []}}]}, True),
        ({"steps": [{"surface": {}, "expect": {"directive": None}}]}, True),
        ({"steps": [{"surface": {}, "expect": {"active_excludes": [], "policy_includes": []}}]}, False),
        ({"steps": [{"surface": {}, "expect": {"active_excludes": ["x"]}}]}, True),
        ({"steps": [{"call": {}, "expect": {"is_error": False}}]}, True),
        ({"steps": [{"surface": {}}], "lenient": True}, True),
        ({"steps": [{"edit": {}}], "lenient": True}, False),
    ],
)
def test_a_scenario_that_cannot_fail_has_no_expectations(
    scenario: dict[str, Any], has_expectations: bool
) -> None:
    assert scenario_format.expects_something(scenario) is has_expectations
