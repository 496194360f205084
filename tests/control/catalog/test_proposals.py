"""A save shows its effect on each agent first, and asks again if the effect has changed."""

from __future__ import annotations

from typing import Any

import pytest

from toolbelt import models
from toolbelt.control import undo, writing
from toolbelt.control.access import switches
from toolbelt.control.catalog import entries, proposals
from toolbelt.control.reports import queries
from toolbelt.core import errors
from toolbelt.runtime import surfaces
from toolbelt.store import snapshots

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("stored")]

HOUSE = {"name": "house", "categories": ["git"], "discoverable": ["clock"]}


@pytest.fixture
def house(stored: None, operator: writing.Write) -> None:
    """Give ada a stored loadout, and bob one that extends it."""
    entries.put(operator, "loadout", HOUSE)
    entries.put(operator, "loadout", {"name": "annex", "parent": "house"})
    entries.put(operator.replace(confirm=True), "agent", {"key": "ada", "loadout": "house"})
    entries.put(operator.replace(confirm=True), "agent", {"key": "bob", "loadout": "annex"})


def reached(proposal: proposals.Proposal) -> dict[str, Any]:
    """Return of each agent that is reached which tools come and go, and what can be asked for."""
    return {
        one.agent.key: (one.effect.added, one.effect.removed, one.gained, one.lost)
        for one in proposal.touched
    }


def active(agent: str) -> list[str]:
    return sorted(queries.summary(agent).inventory.active)


@pytest.mark.usefixtures("house")
def test_a_loadout_reaches_whoever_has_it_and_whoever_extends_it() -> None:
    proposal = proposals.propose("loadout", "house", {"disabled": ["git__push"], "discoverable": None})
    assert reached(proposal) == {
        "ada": ((), ("git__push",), (), ("clock",)),
        "bob": ((), ("git__push",), (), ("clock",)),
    }
    assert (proposal.before, proposal.after) == (
        {"discoverable": ["clock"], "disabled": None},
        {"discoverable": None, "disabled": ["git__push"]},
    )


@pytest.mark.usefixtures("house")
def test_what_was_shown_is_what_comes_of_it(operator: writing.Write) -> None:
    changes = {"disabled": ["git__push"]}
    proposal = proposals.propose("loadout", "house", changes)
    done = proposals.save(
        operator.replace(reason="No pushing."), "loadout", "house", changes, shown=proposal.digest
    )
    for one in proposal.touched:
        assert one.effect.tools_after == len(active(one.agent.key))
        assert "git__push" not in active(one.agent.key)
    entry = models.AuditEntry.objects.latest("id")
    assert (entry.pk, entry.action, entry.subject_key, entry.reason) == (
        done.entry,
        "loadout.change",
        "house",
        "No pushing.",
    )
    undo.undo(operator, entry.pk)
    assert "git__push" in active("ada")


@pytest.mark.usefixtures("house")
def test_nothing_is_saved_before_it_was_shown(operator: writing.Write) -> None:
    with pytest.raises(proposals.UnseenEffect) as asked:
        proposals.save(operator, "loadout", "house", {"disabled": ["git"]})
    assert asked.value.proposal.digest == proposals.propose("loadout", "house", {"disabled": ["git"]}).digest
    assert entries.read("loadout", "house") == HOUSE
    # What was shown of another change does not count for this one.
    with pytest.raises(proposals.UnseenEffect, match="review them again"):
        proposals.save(
            operator, "loadout", "house", {"disabled": ["clock"]}, shown=asked.value.proposal.digest
        )


@pytest.mark.usefixtures("house")
def test_what_was_shown_is_asked_again_once_it_would_do_something_else(operator: writing.Write) -> None:
    changes = {"disabled": ["git__push"]}
    shown = proposals.propose("loadout", "house", changes).digest
    switches.override(operator, "ada", "git__push", False)
    with pytest.raises(proposals.UnseenEffect, match="review them again") as asked:
        proposals.save(operator, "loadout", "house", changes, shown=shown)
    assert list(reached(asked.value.proposal)) == ["bob"]


@pytest.mark.usefixtures("house")
def test_what_somebody_else_changed_meanwhile_is_not_overwritten(operator: writing.Write) -> None:
    was = {"disabled": None}
    entries.change(operator, "loadout", "house", {"disabled": ["clock"]})
    with pytest.raises(errors.Stale):
        proposals.save(operator, "loadout", "house", {"disabled": ["git"]}, was=was, shown="anything")


@pytest.mark.usefixtures("house")
def test_a_change_that_reaches_nobody_is_saved_at_once(operator: writing.Write) -> None:
    done = proposals.save(operator, "loadout", "house", {"description": "Of the house."})
    assert done.entry is not None
    done = proposals.save(operator, "loadout", "loft", {"categories": ["git"]}, new=True)
    assert entries.read("loadout", "loft") == {"name": "loft", "categories": ["git"]}


def test_a_new_loadout_in_the_place_of_a_built_in_one_reaches_who_has_that(operator: writing.Write) -> None:
    entries.put(operator.replace(confirm=True), "agent", {"key": "ada", "kind": "plan"})
    proposal = proposals.propose("loadout", "developer", {"plugins": ["think"]}, new=True)
    gone = reached(proposal)["ada"][1]
    assert gone == ("git__log", "git__push", "git__status")
    assert proposal.before is None
    entries.put(operator, "loadout", {"name": "loft"})
    with pytest.raises(errors.Refused, match="already exists"):
        proposals.propose("loadout", "loft", {}, new=True)


def test_a_toolkit_reaches_whose_switch_is_on_and_says_what_can_destroy(operator: writing.Write) -> None:
    proposal = proposals.propose("toolkit", "reading", {"members": ["git__status", "git__push"]})
    assert reached(proposal) == {"bob": (("git__push",), ("git__log",), (), ())}
    assert proposal.touched[0].destructive == ("git__push",)


def test_a_text_reaches_whoever_is_told_it() -> None:
    proposal = proposals.propose("toolkit", "reading", {"policy_when_off": "Ask somebody else."})
    assert reached(proposal) == {"ada": ((), (), (), ())}
    assert proposal.touched[0].effect.policy == (("reading", "off", "off"),)


def test_a_toolkit_that_may_be_loaded_says_what_can_be_asked_for(operator: writing.Write) -> None:
    entries.put(operator, "agent", {"key": "ada", "allowed_toolkits": ["pushing"]})
    proposal = proposals.propose("toolkit", "pushing", {"members": ["git__log"]})
    assert reached(proposal)["ada"] == ((), (), ("git__log",), ("git__push",))


def test_a_sub_app_reaches_the_agents_that_it_embeds(operator: writing.Write) -> None:
    proposal = proposals.propose("sub_app", "chat", {"tool_names": ["git__log"], "agents": ["ada"]}, new=True)
    assert reached(proposal) == {"ada": (("git__log",), (), (), ())}


def test_the_same_stands_against_a_proposal_as_against_the_change(operator: writing.Write) -> None:
    with pytest.raises(errors.NotFound):
        proposals.propose("toolkit", "writing", {})
    with pytest.raises(errors.Invalid, match=r"toolkits.reading.members\[0\]: There is no tool"):
        proposals.propose("toolkit", "reading", {"members": ["git_statsu"]})
    entries.put(
        operator.replace(confirm=True),
        "agent",
        {"key": "bob", "tools_config": {"reading": True, "pushing": True}},
    )
    colliding = [{"tool": "git__log", "options": {"depth": 3}}]
    with pytest.raises(errors.Invalid, match="For bob: "):
        proposals.propose("toolkit", "pushing", {"members": colliding})
    entries.put(operator, "toolkit", {"key": "coded", "plugin": "git"}, in_code=True)
    with pytest.raises(errors.Invalid, match="owns this"):
        proposals.propose("toolkit", "coded", {"policy": "Mine."})


@pytest.mark.usefixtures("house")
def test_a_removal_is_shown_too_and_refused_while_something_needs_it(operator: writing.Write) -> None:
    with pytest.raises(errors.Refused, match="used by the loadout annex"):
        proposals.propose_removal("loadout", "house")
    entries.put(operator, "sub_app", {"key": "chat", "tool_names": ["clock"], "agents": ["ada"]})
    stored = entries.read("sub_app", "chat")
    with pytest.raises(proposals.UnseenEffect) as asked:
        proposals.remove(operator, "sub_app", "chat", was=stored)
    assert reached(asked.value.proposal) == {"ada": ((), ("clock",), ("clock",), ())}
    digest = asked.value.proposal.digest
    with pytest.raises(errors.Stale):
        proposals.remove(operator, "sub_app", "chat", was={**stored, "title": "Chat"}, shown=digest)
    done = proposals.remove(operator, "sub_app", "chat", was=stored, shown=digest)
    assert not models.SubApp.objects.exists()
    undo.undo(operator, done.entry or 0)
    assert entries.read("sub_app", "chat") == stored


def test_nothing_that_is_proposed_is_kept() -> None:
    before = snapshots.catalog()
    proposals.propose("toolkit", "reading", {"members": ["git__push"]})
    found = proposals.preview_access("toolkit", "reading", {"members": ["git__push"]}, "bob")
    assert [member.tool for member in found.catalog.toolkits["reading"].members] == ["git__push"]
    assert [access.agent.key for access in found.agents] == ["bob"]
    assert "git__push" in found.agents[0].resolved.active
    assert snapshots.catalog() is before


@pytest.mark.usefixtures("house")
def test_what_is_proposed_for_a_toolkit_is_not_what_models_are_sent(operator: writing.Write) -> None:
    switches.flip(operator, "bob", "reading", True)
    entries.put(operator, "agent", {"key": "eve", "tools": ["clock"]})
    snapshots.forget()
    proposals.propose("toolkit", "reading", {"members": ["git__status", "clock"]})
    assert [(tool.name, tool.toolkits) for tool in surfaces.ask("eve").tools] == [("clock", ())]


@pytest.mark.usefixtures("house")
def test_nobody_is_asked_about_a_change_that_a_budget_refuses(operator: writing.Write) -> None:
    switches.flip(operator, "bob", "reading", True)
    has = len(active("bob"))
    budget = {"max_tools": has, "on_exceed": "refuse"}
    entries.change(operator.replace(confirm=True), "agent", "bob", {"budget": budget})

    with pytest.raises(errors.Refused, match=f"The budget of bob is {has} tools; this would make"):
        proposals.propose("toolkit", "reading", {"members": ["git__status", "git__log", "clock"]})


@pytest.mark.usefixtures("house")
def test_the_budget_of_an_agent_that_is_archived_stands_against_nothing(operator: writing.Write) -> None:
    switches.flip(operator, "bob", "reading", True)
    budget = {"max_tools": 0, "on_exceed": "refuse"}
    entries.change(operator.replace(confirm=True), "agent", "bob", {"budget": budget, "archived": True})

    changes = {"members": ["git__status", "git__log", "clock"]}
    proposal = proposals.propose("toolkit", "reading", changes)
    assert [one.agent.key for one in proposal.touched] == ["bob"]
    assert not proposals.save(operator, "toolkit", "reading", changes, shown=proposal.digest).is_nothing


@pytest.mark.usefixtures("house")
def test_a_denial_of_what_does_not_exist_is_shown_before_it_is_saved(operator: writing.Write) -> None:
    changes = {"disabled": ["git__pussh"]}
    with pytest.raises(
        proposals.UnseenEffect, match=r"no plugin or tool named 'git__pussh'.*git__push"
    ) as asked:
        proposals.save(operator, "loadout", "house", changes)
    assert entries.read("loadout", "house") == HOUSE

    proposals.save(operator, "loadout", "house", changes, shown=asked.value.proposal.digest)
    # What was confirmed once does not ask again.
    proposals.save(operator, "loadout", "house", {"description": "Ours."})
