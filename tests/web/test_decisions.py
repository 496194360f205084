"""Tests of the decision behind a toolkit or tool: why it is on or off, and the way out that the page offers."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from tests import factories
from tests.web import acting
from toolbelt import models
from toolbelt.control.access import switches
from toolbelt.control.agents import agents
from toolbelt.control.catalog import entries
from toolbelt.testing import OPERATOR

pytestmark = pytest.mark.django_db
SURE = OPERATOR.replace(confirm=True)


def decisions(browser: Client, key: str) -> list[Any]:
    return list(browser.get(f"/agents/ada/why/{key}/").context["page"].decisions)


def ways(browser: Client, key: str) -> list[tuple[str, str]]:
    """Return what the decisions offer: the words, and where they lead."""
    return [(one.way.words, one.way.url) for one in decisions(browser, key) if one.way]


def test_a_decision_says_who_made_it_and_for_which_tools(operator: Client, belt: None) -> None:
    acting.switch(operator, "issues", "false", "true")
    (off,) = decisions(operator, "issues")
    assert (off.decision.code, off.by) == ("switch-off", "olive")
    assert off.tools == ("github__issue_read", "github__issue_write")
    html = acting.text(operator.get("/agents/ada/why/issues/"))
    assert '<a href="/audit/?person=olive&amp;agent=ada">olive</a>' in html


def test_the_way_out_of_a_switch_posts_the_opposite_and_what_was_seen(operator: Client, belt: None) -> None:
    acting.switch(operator, "issues", "false", "true")
    (off,) = decisions(operator, "issues")
    assert (off.way.words, off.way.on, off.way.was) == ("Turn toolkit issues on", "true", "false")
    acting.post(operator, off.way.url, on=off.way.on, was=off.way.was, confirm="yes")
    assert acting.stored().switches["issues"] is True


def test_what_nothing_grants_is_turned_on_by_its_toolkit_or_by_itself(operator: Client, belt: None) -> None:
    assert ways(operator, "github__merge") == [("Turn toolkit releases on", "/agents/ada/switches/releases/")]
    models.Tool.objects.filter(key="shell").update(default_on=False)
    entries.change(OPERATOR, "tool", "shell", {"description": "Runs commands"})
    assert ways(operator, "shell") == [("Turn this tool on", "/agents/ada/overrides/shell/")]
    assert ways(operator, "papers") == [("Turn toolkit research on", "/agents/ada/switches/research/")]


def test_an_override_is_reset(operator: Client, belt: None) -> None:
    (found,) = decisions(operator, "clock__now")
    assert (found.way.words, found.way.on, found.way.was) == (
        "Reset its override to default",
        "unset",
        "true",
    )


def test_what_has_a_page_of_its_own_is_changed_there(keeper: Client, belt: None) -> None:
    entries.change(SURE, "toolkit", "issues", {"blocked": True})
    assert ways(keeper, "github__issue_write") == [("Unblock toolkit issues", "/toolkits/issues/")]
    models.Plugin.objects.filter(name="github").update(status="failed")
    entries.change(SURE, "toolkit", "issues", {"blocked": False})
    assert ways(keeper, "github__issue_write") == [("Reconnect plugin github", "/plugins/github/")]


def test_a_loadout_that_is_stored_is_edited_and_a_built_in_one_opened(
    keeper: Client, operator: Client, belt: None
) -> None:
    factories.loadout("lobby", disabled=["shell"])
    agents.equip(SURE, "ada", "lobby")
    assert ways(keeper, "shell") == [("Edit loadout lobby", "/loadouts/lobby/edit/")]
    assert ways(operator, "shell") == [("Open loadout lobby", "/loadouts/lobby/")]
    agents.equip(SURE, "ada", "full")
    assert ways(keeper, "github__merge") == [("Open loadout full", "/loadouts/full/")]


def test_a_viewer_reads_the_decision_and_gets_no_button(viewer: Client, belt: None) -> None:
    html = acting.text(viewer.get("/agents/ada/why/issues/"))
    assert "Toolkit issues is on." in html
    assert 'method="post" action="/agents/' not in html
    entries.change(SURE, "toolkit", "issues", {"blocked": True})
    assert ways(viewer, "issues") == [("Open toolkit issues", "/toolkits/issues/")]


def test_htmx_gets_what_the_popover_shows(operator: Client, belt: None) -> None:
    html = acting.text(operator.get("/agents/ada/why/shell/", headers=acting.HTMX))
    assert "<html" not in html
    assert "On by default." in html


@pytest.mark.parametrize("address", ["/agents/nobody/why/shell/", "/agents/ada/why/nothing/"])
def test_what_is_not_there_has_no_decision(operator: Client, belt: None, address: str) -> None:
    assert operator.get(address).status_code == 404


def test_everything_that_keeps_a_tool_off_is_named_with_its_way_out(keeper: Client, belt: None) -> None:
    factories.loadout("lobby", disabled=["github__issue_write"])
    agents.equip(SURE, "ada", "lobby")
    switches.flip(SURE, "ada", "issues", False)
    (decision,) = decisions(keeper, "github__issue_write")
    assert (decision.decision.code, decision.way.words) == ("switch-off", "Turn toolkit issues on")
    assert [(also.decision.code, also.way.words) for also in decision.also] == [
        ("loadout-disabled", "Edit loadout lobby")
    ]
    assert "After that, it is still off:" in acting.text(keeper.get("/agents/ada/why/github__issue_write/"))


def test_a_switch_that_turns_nothing_on_says_why(operator: Client, belt: None) -> None:
    factories.loadout("lobby", disabled=["github__issue_write"])
    agents.equip(SURE, "ada", "lobby")
    html = acting.text(acting.override(operator, "github__issue_write", "true", "unset"))
    assert "Saved, but github__issue_write is not on for ada: disabled by loadout lobby." in html
    html = acting.text(acting.override(operator, "github__issue_write", "true", "true"))
    assert "No changes: github__issue_write is not on for ada: disabled by loadout lobby." in html
    html = acting.text(acting.override(operator, "papers", "true", "unset"))
    assert "papers is on for ada." in html
