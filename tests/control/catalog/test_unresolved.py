"""Tests that a loadout that denies an unknown tool requires confirmation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from toolbelt.control import undo, writing
from toolbelt.control.catalog import entries, unresolved
from toolbelt.control.config import belt_effects, belts
from toolbelt.core import errors, loadout_registry

pytestmark = pytest.mark.usefixtures("stored")

MISSPELLED = {"name": "strict", "disabled": ["git__pussh"]}


def put(write: writing.Write, entry: dict[str, Any]) -> None:
    entries.put(write, "loadout", entry)


def import_(write: writing.Write, entry: dict[str, Any]) -> None:
    belts.import_(write, {"loadouts": [entry]})


def create(write: writing.Write, entry: dict[str, Any]) -> None:
    entries.create(write, "loadout", entry)


SAVES: list[Callable[[writing.Write, dict[str, Any]], None]] = [put, import_, create]


@pytest.mark.parametrize("save", SAVES)
@pytest.mark.parametrize("pattern", ["a*b", "*x", "**", "?", "do?ker", "a b", ""])
def test_a_pattern_that_cannot_match_is_refused(
    operator: writing.Write, save: Callable[..., None], pattern: str
) -> None:
    with pytest.raises(errors.Invalid) as refused:
        save(operator, {"name": "strict", "discoverable": ["docker*", pattern]})
    assert [problem.path for problem in refused.value.problems] == ["loadouts.strict.discoverable[1]"]


@pytest.mark.parametrize("pattern", ["*", "docker*", "git__push", "batchEdit", "a.b-c_*"])
def test_names_and_prefixes_are_valid_patterns(operator: writing.Write, pattern: str) -> None:
    put(operator, {"name": "strict", "discoverable": [pattern]})


def test_building_a_loadout_refuses_an_invalid_pattern() -> None:
    with pytest.raises(errors.Invalid, match="is not a pattern"):
        loadout_registry.Builder.create("strict").add_discoverable("a*b").build()


@pytest.mark.parametrize("save", SAVES)
def test_a_misspelled_denial_requires_confirmation(
    operator: writing.Write, save: Callable[..., None]
) -> None:
    with pytest.raises(errors.ConfirmationRequired, match="Did you mean git__push"):
        save(operator, MISSPELLED)
    assert not unresolved.find_all()

    save(operator.replace(confirm=True), MISSPELLED)
    (entry,) = unresolved.find_all()
    assert (entry.field, entry.name, entry.nearest[0]) == ("disabled", "git__pussh", "git__push")


def test_a_confirmed_denial_is_not_confirmed_again(operator: writing.Write) -> None:
    put(operator.replace(confirm=True), MISSPELLED)
    entries.change(operator, "loadout", "strict", {"description": "Ours."})
    with pytest.raises(errors.ConfirmationRequired, match="'lost'"):
        entries.change(operator, "loadout", "strict", {"disabled": ["git__pussh", "lost"]})


def test_undoing_restores_a_misspelled_denial_without_confirmation(operator: writing.Write) -> None:
    put(operator.replace(confirm=True), MISSPELLED)
    change = entries.change(operator, "loadout", "strict", {"disabled": None})
    assert change.entry is not None
    undo.undo(operator, change.entry)
    assert entries.read("loadout", "strict")["disabled"] == ["git__pussh"]


def test_unknown_plugins_are_kept_and_listed_as_unresolved(operator: writing.Write) -> None:
    put(operator, {"name": "strict", "plugins": ["GIT", "later"], "discoverable": ["soon", "kube*"]})
    assert [(entry.field, entry.name) for entry in unresolved.find_all()] == [
        ("plugins", "later"),
        ("discoverable", "soon"),
    ]


def test_checking_a_belt_warns_about_unknown_names() -> None:
    (warning,) = belts.warnings({"loadouts": [MISSPELLED]})
    assert (warning.path, "git__pussh" in warning.message) == ("loadouts.strict.disabled[0]", True)
    # Entries of the belt itself are known.
    assert belts.warnings({"tools": [{"key": "git__pussh"}], "loadouts": [MISSPELLED]}) == []


def test_applying_an_assessed_belt_confirms_its_unknown_denials(operator: writing.Write) -> None:
    document = {"loadouts": [MISSPELLED]}
    assessment = belt_effects.assess(operator, document)
    assert [warning.path for warning in assessment.imported.warnings] == ["loadouts.strict.disabled[0]"]
    belt_effects.apply(operator, document, revision=assessment.revision, seen_digest=assessment.digest)
    assert len(unresolved.find_all()) == 1
