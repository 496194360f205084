"""How is an agent edited as a whole, and made anew as another one is?"""

from __future__ import annotations

import pytest

from toolbelt import models
from toolbelt.control import actors, agents, entries, switches
from toolbelt.core import errors
from toolbelt.runtime import surfaces

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("stored")]


def test_several_settings_are_changed_in_one_entry(operator: actors.Actor) -> None:
    change = agents.edit(operator, "ada", {"title": "Ada", "kind": "plan"}, was={"title": None}, confirm=True)
    entry = models.AuditEntry.objects.get(pk=change.entry or 0)
    assert (entry.action, entry.after) == ("agent.change", {"title": "Ada", "kind": "plan"})


def test_a_new_loadout_alone_is_told_as_equipping(operator: actors.Actor) -> None:
    change = agents.edit(operator, "ada", {"loadout": "research"}, was={"loadout": None}, confirm=True)
    assert models.AuditEntry.objects.get(pk=change.entry or 0).action == "agent.equip"
    with pytest.raises(errors.Stale):
        agents.edit(operator, "ada", {"loadout": None}, was={"loadout": None}, confirm=True)


def test_a_duplicate_gets_what_the_other_one_gets(operator: actors.Actor) -> None:
    switches.override(operator, "bob", "git__push", True, confirm=True)
    agents.duplicate(operator, "bob", "rob")
    assert entries.read("agent", "rob") == {**entries.read("agent", "bob"), "key": "rob"}
    assert surfaces.ask("rob").fingerprint == surfaces.ask("bob").fingerprint
    switches.flip(operator, "rob", "reading", False)
    assert surfaces.ask("rob").fingerprint != surfaces.ask("bob").fingerprint, "each goes its own way"


def test_a_duplicate_is_refused_a_key_that_is_taken_or_makes_no_sense(operator: actors.Actor) -> None:
    with pytest.raises(errors.Refused, match="'ada' is there already"):
        agents.duplicate(operator, "bob", "ada")
    with pytest.raises(errors.Invalid):
        agents.duplicate(operator, "bob", "a b")
    with pytest.raises(errors.NotFound, match="'bo'"):
        agents.duplicate(operator, "bo", "rob")
