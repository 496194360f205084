"""Tests that a save shows its effect on each agent first, and again if the effect has changed."""

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
    """Assign ada a stored loadout, and bob a loadout that extends it."""
    entries.put(operator, "loadout", HOUSE)
    entries.put(operator, "loadout", {"name": "annex", "parent": "house"})
    entries.put(operator.replace(confirm=True), "agent", {"key": "ada", "loadout": "house"})
    entries.put(operator.replace(confirm=True), "agent", {"key": "bob", "loadout": "annex"})


def effects_by_agent(proposal: proposals.Proposal) -> dict[str, Any]:
    """Return each affected agent's tools: turned on, turned off, newly on request, no longer on request."""
    return {
        affected.agent.key: (affected.effect.added, affected.effect.removed, affected.gained, affected.lost)
        for affected in proposal.touched
    }


def active(agent: str) -> list[str]:
    return sorted(queries.summary(agent).inventory.active)


@pytest.mark.usefixtures("house")
def test_a_loadout_affects_its_agents_and_those_of_loadouts_that_extend_it() -> None:
    proposal = proposals.propose("loadout", "house", {"disabled": ["git__push"], "discoverable": None})
    assert effects_by_agent(proposal) == {
        "ada": ((), ("git__push",), (), ("clock",)),
        "bob": ((), ("git__push",), (), ("clock",)),
    }
    assert (proposal.before, proposal.after) == (
        {"discoverable": ["clock"], "disabled": None},
        {"discoverable": None, "disabled": ["git__push"]},
    )


@pytest.mark.usefixtures("house")
def test_saving_has_exactly_the_effect_that_was_shown(operator: writing.Write) -> None:
    changes = {"disabled": ["git__push"]}
    proposal = proposals.propose("loadout", "house", changes)
    change = proposals.save(
        operator.replace(reason="No pushing."), "loadout", "house", changes, seen_digest=proposal.digest
    )
    for affected in proposal.touched:
        assert affected.effect.tools_after == len(active(affected.agent.key))
        assert "git__push" not in active(affected.agent.key)
    entry = models.AuditEntry.objects.latest("id")
    assert (entry.pk, entry.action, entry.subject_key, entry.reason) == (
        change.entry,
        "loadout.change",
        "house",
        "No pushing.",
    )
    undo.undo(operator, entry.pk)
    assert "git__push" in active("ada")


@pytest.mark.usefixtures("house")
def test_a_change_is_not_saved_until_its_effect_was_shown(operator: writing.Write) -> None:
    with pytest.raises(proposals.UnseenEffect) as raised:
        proposals.save(operator, "loadout", "house", {"disabled": ["git"]})
    assert raised.value.proposal.digest == proposals.propose("loadout", "house", {"disabled": ["git"]}).digest
    assert entries.read("loadout", "house") == HOUSE
    # A digest is only valid for the change that it was computed for.
    with pytest.raises(proposals.UnseenEffect, match="review them again"):
        proposals.save(
            operator, "loadout", "house", {"disabled": ["clock"]}, seen_digest=raised.value.proposal.digest
        )


@pytest.mark.usefixtures("house")
def test_a_save_is_refused_if_the_effect_changed_since_it_was_shown(operator: writing.Write) -> None:
    changes = {"disabled": ["git__push"]}
    shown = proposals.propose("loadout", "house", changes).digest
    switches.override(operator, "ada", "git__push", False)
    with pytest.raises(proposals.UnseenEffect, match="review them again") as raised:
        proposals.save(operator, "loadout", "house", changes, seen_digest=shown)
    assert list(effects_by_agent(raised.value.proposal)) == ["bob"]


@pytest.mark.usefixtures("house")
def test_a_stale_proposal_does_not_overwrite_a_newer_change(operator: writing.Write) -> None:
    was = {"disabled": None}
    entries.change(operator, "loadout", "house", {"disabled": ["clock"]})
    with pytest.raises(errors.Stale):
        proposals.save(operator, "loadout", "house", {"disabled": ["git"]}, was=was, seen_digest="anything")


@pytest.mark.usefixtures("house")
def test_a_change_that_affects_no_agent_is_saved_without_showing_it(operator: writing.Write) -> None:
    change = proposals.save(operator, "loadout", "house", {"description": "Of the house."})
    assert change.entry is not None
    change = proposals.save(operator, "loadout", "loft", {"categories": ["git"]}, new=True)
    assert entries.read("loadout", "loft") == {"name": "loft", "categories": ["git"]}


def test_a_loadout_that_replaces_a_built_in_one_affects_its_agents(operator: writing.Write) -> None:
    entries.put(operator.replace(confirm=True), "agent", {"key": "ada", "kind": "plan"})
    proposal = proposals.propose("loadout", "developer", {"plugins": ["think"]}, new=True)
    removed = effects_by_agent(proposal)["ada"][1]
    assert removed == ("git__log", "git__push", "git__status")
    assert proposal.before is None
    entries.put(operator, "loadout", {"name": "loft"})
    with pytest.raises(errors.Refused, match="already exists"):
        proposals.propose("loadout", "loft", {}, new=True)


def test_a_toolkit_affects_agents_with_its_switch_on_and_lists_destructive_tools(
    operator: writing.Write,
) -> None:
    proposal = proposals.propose("toolkit", "reading", {"members": ["git__status", "git__push"]})
    assert effects_by_agent(proposal) == {"bob": (("git__push",), ("git__log",), (), ())}
    assert proposal.touched[0].destructive == ("git__push",)


def test_a_policy_text_affects_the_agents_that_receive_it(operator: writing.Write) -> None:
    off = proposals.propose("toolkit", "reading", {"policy_when_off": "Ask somebody else."})
    assert effects_by_agent(off) == {}
    entries.change(operator, "agent", "ada", {"tools_config": {"reading": False}})
    proposal = proposals.propose("toolkit", "reading", {"policy_when_off": "Ask somebody else."})
    assert effects_by_agent(proposal) == {"ada": ((), (), (), ())}
    assert proposal.touched[0].effect.policy == (("reading", "off", "off"),)


def test_a_loadable_toolkit_lists_the_tools_on_request_that_change(operator: writing.Write) -> None:
    entries.put(operator, "agent", {"key": "ada", "allowed_toolkits": ["pushing"]})
    proposal = proposals.propose("toolkit", "pushing", {"members": ["git__log"]})
    assert effects_by_agent(proposal)["ada"] == ((), (), ("git__log",), ("git__push",))


def test_a_sub_app_affects_the_agents_it_embeds(operator: writing.Write) -> None:
    proposal = proposals.propose("sub_app", "chat", {"tool_names": ["git__log"], "agents": ["ada"]}, new=True)
    assert effects_by_agent(proposal) == {"ada": (("git__log",), (), (), ())}


def test_a_proposal_is_refused_for_the_same_reasons_as_the_change(operator: writing.Write) -> None:
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
    entries.put(operator.observed_by("git", "program"), "toolkit", {"key": "coded", "plugin": "git"})
    with pytest.raises(errors.Invalid, match="owns this"):
        proposals.propose("toolkit", "coded", {"policy": "Mine."})


@pytest.mark.usefixtures("house")
def test_a_removal_is_shown_first_and_refused_while_the_entry_is_in_use(operator: writing.Write) -> None:
    with pytest.raises(errors.Refused, match="used by the loadout annex"):
        proposals.propose_removal("loadout", "house")
    entries.put(operator, "sub_app", {"key": "chat", "tool_names": ["clock"], "agents": ["ada"]})
    stored = entries.read("sub_app", "chat")
    with pytest.raises(proposals.UnseenEffect) as raised:
        proposals.remove(operator, "sub_app", "chat", was=stored)
    assert effects_by_agent(raised.value.proposal) == {"ada": ((), ("clock",), ("clock",), ())}
    digest = raised.value.proposal.digest
    with pytest.raises(errors.Stale):
        proposals.remove(operator, "sub_app", "chat", was={**stored, "title": "Chat"}, seen_digest=digest)
    change = proposals.remove(operator, "sub_app", "chat", was=stored, seen_digest=digest)
    assert not models.SubApp.objects.exists()
    undo.undo(operator, change.entry or 0)
    assert entries.read("sub_app", "chat") == stored


def test_a_proposal_leaves_the_stored_catalog_unchanged() -> None:
    before = snapshots.catalog()
    proposals.propose("toolkit", "reading", {"members": ["git__push"]})
    preview = proposals.preview_access("toolkit", "reading", {"members": ["git__push"]}, "bob")
    assert [member.tool for member in preview.catalog.toolkits["reading"].members] == ["git__push"]
    assert [access.agent.key for access in preview.agents] == ["bob"]
    assert "git__push" in preview.agents[0].resolved.active
    assert snapshots.catalog() is before


@pytest.mark.usefixtures("house")
def test_a_proposal_for_a_toolkit_does_not_change_what_models_receive(operator: writing.Write) -> None:
    switches.flip(operator, "bob", "reading", True)
    entries.put(operator, "agent", {"key": "eve", "tools": ["clock"]})
    snapshots.forget()
    proposals.propose("toolkit", "reading", {"members": ["git__status", "clock"]})
    assert [(tool.name, tool.toolkits) for tool in surfaces.ask("eve").tools] == [("clock", ())]


@pytest.mark.usefixtures("house")
def test_a_change_that_a_budget_refuses_is_refused_when_it_is_proposed(operator: writing.Write) -> None:
    switches.flip(operator, "bob", "reading", True)
    count = len(active("bob"))
    budget = {"max_tools": count, "on_exceed": "refuse"}
    entries.change(operator.replace(confirm=True), "agent", "bob", {"budget": budget})

    with pytest.raises(
        errors.Refused, match=f"The budget of bob is {count} tools; this change would result in"
    ):
        proposals.propose("toolkit", "reading", {"members": ["git__status", "git__log", "clock"]})


@pytest.mark.usefixtures("house")
def test_an_archived_agents_budget_does_not_prevent_a_change(operator: writing.Write) -> None:
    switches.flip(operator, "bob", "reading", True)
    budget = {"max_tools": 0, "on_exceed": "refuse"}
    entries.change(operator.replace(confirm=True), "agent", "bob", {"budget": budget, "archived": True})

    changes = {"members": ["git__status", "git__log", "clock"]}
    proposal = proposals.propose("toolkit", "reading", changes)
    assert [affected.agent.key for affected in proposal.touched] == ["bob"]
    assert not proposals.save(operator, "toolkit", "reading", changes, seen_digest=proposal.digest).is_nothing


@pytest.mark.usefixtures("house")
def test_denying_an_unknown_tool_is_shown_before_it_is_saved(operator: writing.Write) -> None:
    changes = {"disabled": ["git__pussh"]}
    with pytest.raises(
        proposals.UnseenEffect, match=r"no plugin or tool named 'git__pussh'.*git__push"
    ) as raised:
        proposals.save(operator, "loadout", "house", changes)
    assert entries.read("loadout", "house") == HOUSE

    proposals.save(operator, "loadout", "house", changes, seen_digest=raised.value.proposal.digest)
    # A confirmed denial does not have to be confirmed again.
    proposals.save(operator, "loadout", "house", {"description": "Ours."})
