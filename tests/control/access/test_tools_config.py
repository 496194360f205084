"""Tests that a flat tools_config is applied as a whole or not at all."""

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


def test_a_change_sets_the_given_keys_and_keeps_the_others(operator: writing.Write) -> None:
    change = tools_config.change(operator, "bob", {"git__push": False, "clock": True})

    assert tools_config.read("bob") == {"clock": True, "git__push": False, "reading": True}
    assert change.after == {"git__push": False, "clock": True}
    assert change.before == {"git__push": None, "clock": None}


def test_a_put_clears_the_keys_that_are_not_given(operator: writing.Write) -> None:
    tools_config.put(operator, "bob", {"clock": False})

    assert tools_config.read("bob") == {"clock": False}
    assert active("bob") == []


def test_a_put_is_one_batch_that_is_undone_together(operator: writing.Write) -> None:
    change = tools_config.put(operator.replace(reason="night"), "bob", {"clock": False, "pushing": False})

    recorded = queries.changes(agent="bob", size=3).entries
    assert [(entry.action, entry.key, entry.reason) for entry in recorded] == [
        ("switch.set", "pushing", "night"),
        ("override.set", "clock", "night"),
        ("switch.clear", "reading", "night"),
    ]
    assert len({entry.batch for entry in recorded}) == 1
    assert change.entry == recorded[0].id
    undo.undo_batch(operator, change.entry or 0)
    assert tools_config.read("bob") == {"reading": True}


def test_putting_the_current_values_changes_nothing(operator: writing.Write) -> None:
    change = tools_config.put(operator, "bob", {"reading": True, "clock": None})

    assert change.is_nothing
    assert queries.changes(agent="bob").total == 1  # its creation


def test_every_unknown_key_is_reported_with_its_path_and_nearest_name(operator: writing.Write) -> None:
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
def test_a_value_that_is_not_a_boolean_is_refused(operator: writing.Write, value: object) -> None:
    with pytest.raises(errors.Invalid, match="must be true or false"):
        tools_config.change(operator, "bob", {"clock": value})


def test_a_put_is_stale_even_if_only_a_key_that_it_omits_changed(
    operator: writing.Write,
) -> None:
    seen = tools_config.read("bob")
    switches.override(operator, "bob", "clock", False)

    with pytest.raises(errors.Stale) as stale:
        tools_config.put(operator, "bob", {"reading": False}, was=seen)

    assert (stale.value.was, stale.value.now) == (None, False)
    assert tools_config.read("bob") == {"clock": False, "reading": True}


def test_a_change_with_one_outdated_key_is_refused_as_a_whole(operator: writing.Write) -> None:
    tools_config.change(operator, "ada", {"clock": False, "git__log": True})

    with pytest.raises(errors.Stale):
        tools_config.change(
            operator, "ada", {"clock": None, "git__log": None}, was={"clock": False, "git__log": False}
        )

    assert active("ada") == ["git__log"]


def test_budgets_apply_to_the_result_and_not_to_intermediate_steps(operator: writing.Write) -> None:
    switches.override(operator, "bob", "clock", False)
    switches.override(operator.replace(confirm=True), "bob", "git__push", True)
    entries.change(operator, "agent", "bob", {"budget": {"max_tools": 3, "on_exceed": "refuse"}})

    tools_config.change(operator, "bob", {"clock": None, "git__push": None})

    assert active("bob") == ["clock", "git__log", "git__status"]


def test_a_put_that_causes_conflicting_options_is_refused(operator: writing.Write) -> None:
    with pytest.raises(errors.Invalid, match="git__log") as refused:
        tools_config.put(operator, "ada", {"reading": True, "verbose": True})

    assert [problem.path for problem in refused.value.problems] == ["agents.ada.tools_config.verbose"]


def test_an_existing_options_conflict_does_not_prevent_other_changes(
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


def test_a_change_with_a_large_effect_requires_confirmation(operator: writing.Write) -> None:
    with pytest.raises(errors.ConfirmationRequired) as raised:
        tools_config.change(operator, "ada", {"pushing": True, "clock": False})

    assert raised.value.differences["added"] == ["git__push"]
    assert raised.value.differences["removed"] == ["clock"]
    tools_config.change(operator.replace(confirm=True), "ada", {"pushing": True, "clock": False})
    assert active("ada") == ["git__push"]
