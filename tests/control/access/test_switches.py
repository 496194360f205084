"""Tests that a flip takes effect once, with one audit entry, or not at all."""

import datetime as dt

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from toolbelt.control import writing
from toolbelt.control.access import switches
from toolbelt.control.catalog import entries
from toolbelt.core import errors
from toolbelt.runtime import calls as gate
from toolbelt.runtime import surfaces
from toolbelt.store import clock

pytestmark = pytest.mark.usefixtures("stored")


def active(agent: str) -> list[str]:
    return [definition.name for definition in surfaces.ask(agent).tools]


def test_turning_a_toolkit_on_adds_its_tools_and_policy_to_the_next_surface(operator: writing.Write) -> None:
    change = switches.flip(operator, "ada", "reading", True, was=None)

    answer = surfaces.ask("ada")
    assert active("ada") == ["clock", "git__log", "git__status"]
    assert "Look before you write: git__status, git__log." in answer.policy.text
    assert change.effect is not None
    assert change.effect.added == ("git__log", "git__status")
    assert change.effect.policy == (("reading", "none", "on"),)


def test_turning_on_a_destructive_tool_requires_confirmation(operator: writing.Write) -> None:
    with pytest.raises(errors.ConfirmationRequired) as raised:
        switches.flip(operator, "ada", "pushing", True)
    assert active("ada") == ["clock"]
    assert raised.value.differences["added"] == ["git__push"]

    switches.flip(operator.replace(confirm=True), "ada", "pushing", True)
    assert active("ada") == ["clock", "git__push"]


def test_a_refusing_budget_never_prevents_turning_a_tool_off(operator: writing.Write) -> None:
    entries.change(operator, "agent", "bob", {"budget": {"max_tools": 1, "on_exceed": "refuse"}})

    switches.override(operator, "bob", "git__log", False)

    assert active("bob") == ["clock", "git__status"]


def test_a_flip_that_causes_conflicting_options_is_refused(
    operator: writing.Write,
) -> None:
    with pytest.raises(errors.Invalid) as refused:
        switches.flip(operator, "bob", "verbose", True)

    assert [problem.path for problem in refused.value.problems] == ["agents.bob.tools_config.verbose"]
    assert "git__log" in str(refused.value)


@pytest.mark.parametrize(("write", "key"), [(switches.flip, "raeding"), (switches.override, "git__pusch")])
def test_an_unknown_key_is_reported_with_the_nearest_names(operator: writing.Write, write, key: str) -> None:
    with pytest.raises(errors.NotFound) as unknown:
        write(operator, "ada", key, True)

    assert unknown.value.nearest[0] in ("reading", "git__push")


def test_a_preview_shows_the_effect_and_changes_nothing(operator: writing.Write) -> None:
    effect = switches.preview("ada", "reading", True)

    assert (effect.tools_before, effect.tools_after) == (1, 3)
    assert active("ada") == ["clock"]


def test_a_flip_takes_a_constant_number_of_queries_whatever_else_is_set(
    operator: writing.Write,
) -> None:
    def count_queries(on: bool) -> int:
        surfaces.ask("ada")
        with CaptureQueriesContext(connection) as queried:
            assert not switches.flip(operator, "ada", "reading", on).is_nothing
        return len(queried)

    switches.flip(operator, "ada", "reading", False)
    baseline = count_queries(True)
    assert count_queries(False) == baseline <= 12
    switches.override(operator, "ada", "clock", False)
    switches.flip(operator, "ada", "pushing", False, ends=clock.now() + dt.timedelta(hours=1))
    for number in range(20):
        gate.run("ada", "list_toolkits", {}, session=f"s{number}")
    assert count_queries(True) == count_queries(False) == baseline


def test_previewing_a_flip_takes_as_many_queries_with_many_sessions_as_with_one(
    operator: writing.Write,
) -> None:
    def count_queries() -> int:
        with CaptureQueriesContext(connection) as queried:
            switches.previews("ada", "reading", (True, False))
        return len(queried)

    gate.run("ada", "list_toolkits", {}, session="s")
    baseline = count_queries()
    for number in range(20):
        gate.run("ada", "list_toolkits", {}, session=f"s{number}")
    assert count_queries() == baseline
