"""Tests that every change can be undone, unless a later change affects the same values."""

import pytest

from toolbelt.control import undo, writing
from toolbelt.control.access import switches, tools_config
from toolbelt.control.agents import agents
from toolbelt.control.catalog import entries
from toolbelt.control.config import belts
from toolbelt.control.reports import queries
from toolbelt.core import errors
from toolbelt.runtime import surfaces

pytestmark = pytest.mark.usefixtures("stored")


def test_undoing_a_flip_restores_the_surface_exactly(operator: writing.Write) -> None:
    before = surfaces.ask("bob")
    change = switches.flip(operator, "bob", "reading", False)
    assert surfaces.ask("bob").fingerprint != before.fingerprint

    undo.undo(operator, change.entry or 0)

    assert surfaces.ask("bob").fingerprint == before.fingerprint


def test_undoing_is_recorded_as_an_entry_that_can_be_undone(operator: writing.Write) -> None:
    change = switches.flip(operator, "bob", "reading", False)
    undone = undo.undo(operator, change.entry or 0)
    entry = queries.change(undone.entry or 0)
    assert entry is not None
    assert entry.undoes == change.entry

    undo.undo(operator, undone.entry or 0)

    assert [definition.name for definition in surfaces.ask("bob").tools] == ["clock"]


def test_undoing_a_value_that_changed_since_is_refused_with_all_three_states(operator: writing.Write) -> None:
    change = switches.flip(operator, "bob", "reading", False)
    switches.flip(operator, "bob", "reading", None)

    with pytest.raises(errors.Stale) as refused:
        undo.undo(operator, change.entry or 0)

    assert (refused.value.was, refused.value.now, refused.value.wanted) == (False, None, True)


def test_undoing_needs_no_confirmation(operator: writing.Write) -> None:
    switches.flip(operator.replace(confirm=True), "ada", "pushing", True)
    change = switches.flip(operator, "ada", "pushing", False)

    undo.undo(operator, change.entry or 0)

    assert "git__push" in surfaces.ask("ada").because


def test_undoing_one_field_keeps_later_changes_of_other_fields(operator: writing.Write) -> None:
    change = entries.change(operator, "toolkit", "reading", {"policy": "Changed."})
    entries.change(operator, "toolkit", "reading", {"title": "Reading"})

    undo.undo(operator, change.entry or 0)

    entry = entries.read("toolkit", "reading")
    assert (entry["policy"], entry["title"]) == ("Look before you write: {active_tools}.", "Reading")


def test_undoing_a_removal_restores_the_whole_agent(operator: writing.Write) -> None:
    before = entries.read("agent", "bob")
    change = entries.remove(operator, "agent", "bob")
    with pytest.raises(errors.NotFound):
        surfaces.ask("bob")

    undo.undo(operator, change.entry or 0)

    assert entries.read("agent", "bob") == before


def test_undoing_a_creation_removes_the_unchanged_entry(operator: writing.Write) -> None:
    change = entries.put(operator, "agent", {"key": "eve"})

    undo.undo(operator, change.entry or 0)

    assert "eve" not in queries.agent_keys()


def test_undoing_a_loadout_change_restores_the_former_loadout(operator: writing.Write) -> None:
    agents.equip(operator, "ada", "minimal")
    change = agents.equip(operator.replace(confirm=True), "ada", "full")

    undo.undo(operator, change.entry or 0)

    assert entries.read("agent", "ada")["loadout"] == "minimal"


def test_undoing_a_batch_reverts_all_of_its_changes(operator: writing.Write) -> None:
    switches.override(operator, "ada", "clock", False)
    switches.override(operator, "ada", "git__log", True)
    change = tools_config.change(operator, "ada", {"clock": None, "git__log": None})

    undone = undo.undo_batch(operator, change.entry or 0)

    assert entries.read("agent", "ada")["tools_config"] == {"clock": False, "git__log": True}
    assert undone.effect is not None
    assert (undone.effect.added, undone.effect.removed) == (("git__log",), ("clock",))


def test_a_whole_import_can_be_undone(operator: writing.Write) -> None:
    belts.import_(operator, {"agents": [{"key": "eve"}, {"key": "bob", "title": "Bob"}]})
    newest = queries.changes(size=2).entries

    undo.undo_batch(operator, newest[0].id)

    assert queries.agent_keys() == ["ada", "bob"]
    assert "title" not in entries.read("agent", "bob")


def test_undoing_an_unknown_change_is_not_found(operator: writing.Write) -> None:
    with pytest.raises(errors.NotFound):
        undo.undo(operator, 10**9)


def test_undoing_a_partly_undone_batch_reverts_the_rest(operator: writing.Write) -> None:
    switches.override(operator, "ada", "clock", False)
    switches.override(operator, "ada", "git__log", True)
    change = tools_config.change(operator, "ada", {"clock": None, "git__log": None})
    first = queries.changes(agent="ada", key="clock").entries[0]
    undo.undo(operator, first.id)

    undo.undo_batch(operator, change.entry or 0)

    assert entries.read("agent", "ada")["tools_config"] == {"clock": False, "git__log": True}


def test_undoing_a_batch_can_itself_be_undone(operator: writing.Write) -> None:
    switches.override(operator, "ada", "clock", False)
    switches.override(operator, "ada", "git__log", True)
    change = tools_config.change(operator, "ada", {"clock": None, "git__log": None})
    undone = undo.undo_batch(operator, change.entry or 0)

    undo.undo_batch(operator, undone.entry or 0)

    assert "tools_config" not in entries.read("agent", "ada")


def test_an_imported_switch_can_be_undone_after_another_key_changed(
    operator: writing.Write,
) -> None:
    belts.import_(operator, {"agents": [{"key": "ada", "tools_config": {"reading": True}}]})
    entry = queries.changes(agent="ada", key="reading").entries[0]
    switches.override(operator, "ada", "clock", False)

    undo.undo(operator, entry.id)

    assert (entry.action, entry.batch is None) == ("switch.set", False)
    assert entries.read("agent", "ada")["tools_config"] == {"clock": False}
