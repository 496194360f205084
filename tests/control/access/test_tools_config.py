"""A flat tools_config is applied as a whole or not at all."""

from __future__ import annotations

import pytest

from toolbelt.control import undo, writing
from toolbelt.control.access import switches, tools_config
from toolbelt.control.catalog import entries
from toolbelt.control.reports import queries
from toolbelt.core import errors
from toolbelt.runtime import surfaces

pytestmark = pytest.mark.usefixtures("stored")


def active(agent: str) -> list[str]:
    return [definition.name for definition in surfaces.ask(agent).tools]


def test_a_change_sets_what_it_names_and_leaves_the_rest(operator: writing.Write) -> None:
    done = tools_config.change(operator, "bob", {"git__push": False, "clock": True})

    assert tools_config.read("bob") == {"clock": True, "git__push": False, "reading": True}
    assert done.after == {"git__push": False, "clock": True}
    assert done.before == {"git__push": None, "clock": None}


def test_a_put_clears_what_it_does_not_name(operator: writing.Write) -> None:
    tools_config.put(operator, "bob", {"clock": False})

    assert tools_config.read("bob") == {"clock": False}
    assert active("bob") == []


def test_all_of_it_is_one_act_that_is_undone_as_one(operator: writing.Write) -> None:
    done = tools_config.put(operator.replace(reason="night"), "bob", {"clock": False, "pushing": False})

    written = queries.changes(agent="bob", size=3).entries
    assert [(one.action, one.key, one.reason) for one in written] == [
        ("switch.set", "pushing", "night"),
        ("override.set", "clock", "night"),
        ("switch.clear", "reading", "night"),
    ]
    assert len({one.batch for one in written}) == 1
    assert done.entry == written[0].id
    undo.undo_batch(operator, done.entry or 0)
    assert tools_config.read("bob") == {"reading": True}


def test_what_is_so_already_changes_nothing(operator: writing.Write) -> None:
    done = tools_config.put(operator, "bob", {"reading": True, "clock": None})

    assert done.is_nothing
    assert queries.changes(agent="bob").total == 1  # its creation


def test_every_key_that_names_nothing_is_told_with_its_path_and_its_nearest(operator: writing.Write) -> None:
    with pytest.raises(errors.Invalid) as refused:
        tools_config.change(operator, "bob", {"raeding": True, "clock": False, "git__pusch": None, "": True})

    assert [problem.path for problem in refused.value.problems] == [
        "agents.bob.tools_config.raeding",
        "agents.bob.tools_config.git__pusch",
        "agents.bob.tools_config[3]",
    ]
    assert "Did you mean reading" in refused.value.problems[0].message
    assert tools_config.read("bob") == {"reading": True}


@pytest.mark.parametrize("value", [1, 0, "true", "on", [], {}, 1.0])
def test_a_value_that_is_no_answer_is_refused(operator: writing.Write, value: object) -> None:
    with pytest.raises(errors.Invalid, match="must be true or false"):
        tools_config.change(operator, "bob", {"clock": value})


def test_a_put_that_saw_another_state_does_nothing_even_of_a_key_that_it_does_not_name(
    operator: writing.Write,
) -> None:
    seen = tools_config.read("bob")
    switches.override(operator, "bob", "clock", False)

    with pytest.raises(errors.Stale) as stale:
        tools_config.put(operator, "bob", {"reading": False}, was=seen)

    assert (stale.value.was, stale.value.now) == (None, False)
    assert tools_config.read("bob") == {"clock": False, "reading": True}


def test_a_change_that_saw_an_old_state_of_one_key_does_nothing_at_all(operator: writing.Write) -> None:
    tools_config.change(operator, "ada", {"clock": False, "git__log": True})

    with pytest.raises(errors.Stale):
        tools_config.change(
            operator, "ada", {"clock": None, "git__log": None}, was={"clock": False, "git__log": False}
        )

    assert active("ada") == ["git__log"]


def test_it_is_judged_as_a_whole_and_not_on_its_way(operator: writing.Write) -> None:
    switches.override(operator, "bob", "clock", False)
    switches.override(operator.replace(confirm=True), "bob", "git__push", True)
    entries.change(operator, "agent", "bob", {"budget": {"max_tools": 3, "on_exceed": "refuse"}})

    tools_config.change(operator, "bob", {"clock": None, "git__push": None})

    assert active("bob") == ["clock", "git__log", "git__status"]


def test_what_would_bring_one_tool_with_two_sets_of_options_is_refused(operator: writing.Write) -> None:
    with pytest.raises(errors.Invalid, match="git__log") as refused:
        tools_config.put(operator, "ada", {"reading": True, "verbose": True})

    assert [problem.path for problem in refused.value.problems] == ["agents.ada.tools_config.verbose"]


def test_a_conflict_that_stands_already_stops_nobody_from_flipping_something_else(
    operator: writing.Write,
) -> None:
    from toolbelt import testing

    testing.RowsWorld().load(
        {
            "tools": [{"key": "log"}, {"key": "papers"}],
            "toolkits": [
                {"key": "plain", "members": ["log"]},
                {"key": "deep", "members": [{"tool": "log", "options": {"depth": 9}}]},
            ],
            "agents": [{"key": "eve", "tools_config": {"plain": True, "deep": True}}],
        },
        lenient=True,
    )

    tools_config.put(operator, "eve", {"plain": True, "deep": True, "papers": False})

    assert tools_config.read("eve") == {"deep": True, "papers": False, "plain": True}


def test_a_far_reaching_one_is_asked_about_first(operator: writing.Write) -> None:
    with pytest.raises(errors.ConfirmationRequired) as asked:
        tools_config.change(operator, "ada", {"pushing": True, "clock": False})

    assert asked.value.differences["added"] == ["git__push"]
    assert asked.value.differences["removed"] == ["clock"]
    tools_config.change(operator.replace(confirm=True), "ada", {"pushing": True, "clock": False})
    assert active("ada") == ["git__push"]
