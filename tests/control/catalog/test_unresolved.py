"""A loadout that denies a tool that does not exist requires confirmation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from toolbelt.control import undo, writing
from toolbelt.control.catalog import entries, unresolved
from toolbelt.control.config import belt_effects, belts
from toolbelt.core import errors, loadout_registry

pytestmark = pytest.mark.usefixtures("stored")

MISSPELT = {"name": "strict", "disabled": ["git__pussh"]}


def put(write: writing.Write, entry: dict[str, Any]) -> None:
    entries.put(write, "loadout", entry)


def import_(write: writing.Write, entry: dict[str, Any]) -> None:
    belts.import_(write, {"loadouts": [entry]})


def create(write: writing.Write, entry: dict[str, Any]) -> None:
    entries.create(write, "loadout", entry)


ROADS: list[Callable[[writing.Write, dict[str, Any]], None]] = [put, import_, create]


@pytest.mark.parametrize("save", ROADS)
@pytest.mark.parametrize("pattern", ["a*b", "*x", "**", "?", "do?ker", "a b", ""])
def test_a_pattern_that_can_match_nothing_is_refused(
    operator: writing.Write, save: Callable[..., None], pattern: str
) -> None:
    with pytest.raises(errors.Invalid) as refused:
        save(operator, {"name": "strict", "discoverable": ["docker*", pattern]})
    assert [problem.path for problem in refused.value.problems] == ["loadouts.strict.discoverable[1]"]


@pytest.mark.parametrize("pattern", ["*", "docker*", "git__push", "batchEdit", "a.b-c_*"])
def test_a_name_and_a_beginning_are_patterns(operator: writing.Write, pattern: str) -> None:
    put(operator, {"name": "strict", "discoverable": [pattern]})


def test_a_bad_pattern_is_refused_where_a_loadout_is_built() -> None:
    with pytest.raises(errors.Invalid, match="is not a pattern"):
        loadout_registry.Builder.create("strict").add_discoverable("a*b").build()


@pytest.mark.parametrize("save", ROADS)
def test_a_misspelt_denial_asks_before_it_is_saved(
    operator: writing.Write, save: Callable[..., None]
) -> None:
    with pytest.raises(errors.ConfirmationRequired, match="Did you mean git__push"):
        save(operator, MISSPELT)
    assert not unresolved.find_all()

    save(operator.replace(confirm=True), MISSPELT)
    (entry,) = unresolved.find_all()
    assert (entry.field, entry.name, entry.nearest[0]) == ("disabled", "git__pussh", "git__push")


def test_a_denial_that_was_confirmed_does_not_ask_again(operator: writing.Write) -> None:
    put(operator.replace(confirm=True), MISSPELT)
    entries.change(operator, "loadout", "strict", {"description": "Ours."})
    with pytest.raises(errors.ConfirmationRequired, match="'lost'"):
        entries.change(operator, "loadout", "strict", {"disabled": ["git__pussh", "lost"]})


def test_undoing_restores_such_a_denial_without_asking(operator: writing.Write) -> None:
    put(operator.replace(confirm=True), MISSPELT)
    change = entries.change(operator, "loadout", "strict", {"disabled": None})
    assert change.entry is not None
    undo.undo(operator, change.entry)
    assert entries.read("loadout", "strict")["disabled"] == ["git__pussh"]


def test_plugins_that_do_not_exist_are_kept_and_listed(operator: writing.Write) -> None:
    put(operator, {"name": "strict", "plugins": ["GIT", "later"], "discoverable": ["soon", "kube*"]})
    assert [(entry.field, entry.name) for entry in unresolved.find_all()] == [
        ("plugins", "later"),
        ("discoverable", "soon"),
    ]


def test_a_checked_belt_tells_what_names_nothing() -> None:
    (warning,) = belts.warnings({"loadouts": [MISSPELT]})
    assert (warning.path, "git__pussh" in warning.message) == ("loadouts.strict.disabled[0]", True)
    # What the belt itself brings exists.
    assert belts.warnings({"tools": [{"key": "git__pussh"}], "loadouts": [MISSPELT]}) == []


def test_whoever_saw_the_assessment_of_a_belt_confirms_it(operator: writing.Write) -> None:
    document = {"loadouts": [MISSPELT]}
    assessed = belt_effects.assess(operator, document)
    assert [warning.path for warning in assessed.imported.warnings] == ["loadouts.strict.disabled[0]"]
    belt_effects.apply(operator, document, revision=assessed.revision, shown=assessed.digest)
    assert len(unresolved.find_all()) == 1
