"""Tests of conflicts: two sources with different options for a tool."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core import building
from toolbelt.core import agents, catalog, conflicts

HERE, THERE = {"path": "/here"}, {"path": "/there"}
ROOM = catalog.SubApp(key="room", tool_names=("run",), agents=("ada",))
STORED = building.catalog_of(
    "run other",
    toolkits=[
        building.toolkit("here", {"run": HERE}),
        building.toolkit("there", {"run": THERE, "other": None}),
        building.toolkit("plain", {"run": None}),
    ],
    sub_apps=[ROOM],
)


def ranked(ada: agents.Agent, **loaded: Any) -> list[tuple[str, str]]:
    return [(source.kind, source.name) for source in conflicts.sources(STORED, ada, "run", **loaded)]


def test_sources_are_ranked_from_always_on_to_loaded() -> None:
    ada = building.agent(
        tools={"run": HERE},
        switches={"plain": True},
        allowed="here there plain",
        initial="there",
    )
    assert ranked(ada, loaded=["here"], loaded_by_name=["run"]) == [
        ("always-on", "run"),
        ("sub-app", "room"),
        ("switch", "plain"),
        ("initial", "there"),
        ("loaded", "here"),
        ("loaded", "run"),
    ]


def test_off_switches_and_disallowed_initial_toolkits_are_not_sources() -> None:
    ada = building.agent(switches={"here": False}, initial="there")
    assert ranked(ada) == [("sub-app", "room")]


@pytest.mark.parametrize(
    ("first", "second", "is_conflict"),
    [
        (HERE, THERE, True),
        (HERE, dict(HERE), False),
        (HERE, None, True),
        (None, HERE, True),
        (None, None, False),
        ({"n": 1}, {"n": True}, True),
        ({"n": 1}, {"n": 1.0}, False),
    ],
)
def test_absent_and_different_options_conflict_but_equal_options_do_not(
    first: Any, second: Any, is_conflict: bool
) -> None:
    sources = [
        conflicts.Source(kind="initial", name=name, options=options)
        for name, options in (("a", first), ("b", second))
    ]
    assert (conflicts.first_conflict(sources, "run") is not None) is is_conflict


def test_empty_options_count_as_none() -> None:
    stored = building.catalog_of("run", toolkits=[building.toolkit("kit", {"run": {}})])
    ada = building.agent(tools={"run": {}}, allowed="kit", initial="kit")
    assert [source.options for source in conflicts.sources(stored, ada, "run")] == [None, None]
    assert conflicts.of_agent(stored, ada) == ()


def test_a_conflict_names_the_tool_and_both_sources_with_options() -> None:
    ada = building.agent(key="bob", tools={"run": HERE}, allowed="there", initial="there")
    (conflict,) = conflicts.of_agent(STORED, ada)
    assert (conflict.tool, conflict.first.options, conflict.second.options) == ("run", HERE, THERE)
    assert conflict.message == (
        "run comes from always-on 'run' with the option 'path' and from initial 'there' "
        "with other values of the same."
    )


def test_a_sub_apps_tool_conflicts_with_a_toolkit_that_has_options() -> None:
    (conflict,) = conflicts.of_agent(STORED, building.agent(switches={"here": True}))
    assert (conflict.first.kind, conflict.first.options, conflict.second.name) == ("sub-app", None, "here")


@pytest.mark.parametrize(
    "denial", [{"overrides": {"run": False}}, {"switches": {"here": True, "plain": False}}]
)
def test_a_denied_tool_has_no_conflict(denial: Any) -> None:
    ada = building.agent(key="bob", tools={"run": HERE}, allowed="there", initial="there", **denial)
    assert conflicts.of_agent(STORED, ada) == ()


def test_only_tools_with_options_are_checked_for_conflicts() -> None:
    assert conflicts.tools_with_options(STORED, building.agent()) == {"run"}
    assert conflicts.tools_with_options(STORED, building.agent(tools={"other": HERE})) == {"run", "other"}
