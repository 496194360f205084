"""Tests of editing, duplicating and removing agents."""

from __future__ import annotations

import datetime as dt

import pytest

from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.access import switches
from toolbelt.control.agents import agents
from toolbelt.control.catalog import entries
from toolbelt.core import errors
from toolbelt.runtime import surfaces
from toolbelt.store import context_use, learned_words

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("stored")]


def test_several_settings_are_changed_in_one_audit_entry(operator: writing.Write) -> None:
    change = agents.edit(
        operator.replace(confirm=True), "ada", {"title": "Ada", "kind": "plan"}, was={"title": None}
    )
    entry = models.AuditEntry.objects.get(pk=change.entry or 0)
    assert (entry.action, entry.after) == ("agent.change", {"title": "Ada", "kind": "plan"})


def test_changing_only_the_loadout_is_recorded_as_equipping(operator: writing.Write) -> None:
    change = agents.edit(
        operator.replace(confirm=True), "ada", {"loadout": "research"}, was={"loadout": None}
    )
    assert models.AuditEntry.objects.get(pk=change.entry or 0).action == "agent.equip"
    with pytest.raises(errors.Stale):
        agents.edit(operator.replace(confirm=True), "ada", {"loadout": None}, was={"loadout": None})


def test_a_duplicate_has_the_settings_of_the_original(operator: writing.Write) -> None:
    switches.override(operator.replace(confirm=True), "bob", "git__push", True)
    agents.duplicate(operator, "bob", "rob")
    assert entries.read("agent", "rob") == {**entries.read("agent", "bob"), "key": "rob"}
    assert surfaces.ask("rob").fingerprint == surfaces.ask("bob").fingerprint
    switches.flip(operator, "rob", "reading", False)
    assert surfaces.ask("rob").fingerprint != surfaces.ask("bob").fingerprint, "the two are independent"


def test_duplicating_to_a_taken_or_invalid_key_is_refused(operator: writing.Write) -> None:
    with pytest.raises(errors.Refused, match="'ada' already exists"):
        agents.duplicate(operator, "bob", "ada")
    with pytest.raises(errors.Invalid):
        agents.duplicate(operator, "bob", "a b")
    with pytest.raises(errors.NotFound, match="'bo'"):
        agents.duplicate(operator, "bo", "rob")


def test_removing_an_agent_deletes_its_learned_words_and_usage(operator: writing.Write) -> None:
    day = dt.date(2026, 3, 1)
    agents.duplicate(operator, "bob", "rob")
    for agent in ("bob", "rob"):
        learned_words.add_all([learned_words.Lesson("git__push", agent, ("lead",))])
        context_use.add_all([context_use.Use(agent, day, 1, 10, 100)])

    entries.remove(operator.replace(confirm=True), "agent", "rob")

    assert list(models.LearnedWords.objects.values_list("agent", flat=True)) == ["bob"]
    assert list(models.ContextUse.objects.values_list("agent", flat=True)) == ["bob"]
