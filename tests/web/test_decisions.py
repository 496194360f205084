"""Tests of the page that explains why a toolkit or tool is on or off, and of the remedies that it offers."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from tests import factories
from tests.web import dashboard
from toolbelt import models
from toolbelt.control.access import switches
from toolbelt.control.agents import agents
from toolbelt.control.catalog import entries
from toolbelt.testing import OPERATOR

pytestmark = pytest.mark.django_db
SURE = OPERATOR.replace(confirm=True)


def decisions(browser: Client, key: str) -> list[Any]:
    return list(browser.get(f"/agents/ada/why/{key}/").context["page"].decisions)


def remedies(browser: Client, key: str) -> list[tuple[str, str]]:
    """Return the label and URL of each remedy that the decisions offer."""
    return [(each.control.words, each.control.url) for each in decisions(browser, key) if each.control]


def test_a_decision_shows_its_author_and_tools(operator: Client, belt: None) -> None:
    dashboard.switch(operator, "issues", "false", "true")
    (off,) = decisions(operator, "issues")
    assert (off.decision.code, off.newest.actor) == ("switch-off", "olive")
    assert off.tools == ("github__issue_read", "github__issue_write")
    html = dashboard.text(operator.get("/agents/ada/why/issues/"))
    assert '<a href="/audit/?person=olive&amp;agent=ada">olive</a>' in html


def test_the_remedy_for_a_switch_posts_the_opposite_and_the_displayed_state(
    operator: Client, belt: None
) -> None:
    dashboard.switch(operator, "issues", "false", "true")
    (off,) = decisions(operator, "issues")
    assert (off.control.words, off.control.on, off.control.was) == ("Turn toolkit issues on", "true", "false")
    dashboard.post(operator, off.control.url, on=off.control.on, was=off.control.was, confirm="yes")
    assert dashboard.stored_agent().switches["issues"] is True


def test_an_ungranted_tool_is_turned_on_by_toolkit_or_override(operator: Client, belt: None) -> None:
    assert remedies(operator, "github__merge") == [
        ("Turn toolkit releases on", "/agents/ada/switches/releases/")
    ]
    models.Tool.objects.filter(key="shell").update(default_on=False)
    entries.change(OPERATOR, "tool", "shell", {"description": "Runs commands"})
    assert remedies(operator, "shell") == [("Turn this tool on", "/agents/ada/overrides/shell/")]
    assert remedies(operator, "papers") == [("Turn toolkit research on", "/agents/ada/switches/research/")]


def test_the_remedy_for_an_override_is_to_reset_it(operator: Client, belt: None) -> None:
    (decision,) = decisions(operator, "clock__now")
    assert (decision.control.words, decision.control.on, decision.control.was) == (
        "Reset its override to default",
        "unset",
        "true",
    )


def test_remedies_for_blocks_and_failed_plugins_link_to_their_pages(
    plugin_manager: Client, belt: None
) -> None:
    entries.change(SURE, "toolkit", "issues", {"blocked": True})
    assert remedies(plugin_manager, "github__issue_write") == [
        ("Unblock toolkit issues", "/toolkits/issues/")
    ]
    models.Plugin.objects.filter(name="github").update(status="failed")
    entries.change(SURE, "toolkit", "issues", {"blocked": False})
    assert remedies(plugin_manager, "github__issue_write") == [
        ("Reconnect plugin github", "/plugins/github/")
    ]


def test_the_remedy_edits_a_stored_loadout_and_opens_a_built_in_loadout(
    plugin_manager: Client, operator: Client, belt: None
) -> None:
    factories.loadout("lobby", disabled=["shell"])
    agents.equip(SURE, "ada", "lobby")
    assert remedies(plugin_manager, "shell") == [("Edit loadout lobby", "/loadouts/lobby/edit/")]
    assert remedies(operator, "shell") == [("Open loadout lobby", "/loadouts/lobby/")]
    agents.equip(SURE, "ada", "full")
    assert remedies(plugin_manager, "github__merge") == [("Open loadout full", "/loadouts/full/")]


def test_a_viewer_sees_the_decision_without_a_button(viewer: Client, belt: None) -> None:
    html = dashboard.text(viewer.get("/agents/ada/why/issues/"))
    assert "Toolkit issues is on." in html
    assert 'method="post" action="/agents/' not in html
    entries.change(SURE, "toolkit", "issues", {"blocked": True})
    assert remedies(viewer, "issues") == [("Open toolkit issues", "/toolkits/issues/")]


def test_htmx_requests_get_the_popover_content(operator: Client, belt: None) -> None:
    html = dashboard.text(operator.get("/agents/ada/why/shell/", headers=dashboard.HTMX))
    assert "<html" not in html
    assert "On by default." in html


@pytest.mark.parametrize("address", ["/agents/nobody/why/shell/", "/agents/ada/why/nothing/"])
def test_an_unknown_agent_or_tool_is_not_found(operator: Client, belt: None, address: str) -> None:
    assert operator.get(address).status_code == 404


def test_every_reason_that_a_tool_is_off_has_a_remedy(plugin_manager: Client, belt: None) -> None:
    factories.loadout("lobby", disabled=["github__issue_write"])
    agents.equip(SURE, "ada", "lobby")
    switches.flip(SURE, "ada", "issues", False)
    (decision,) = decisions(plugin_manager, "github__issue_write")
    assert (decision.decision.code, decision.control.words) == ("switch-off", "Turn toolkit issues on")
    assert [(denial.code, control.words) for denial, control in decision.denials] == [
        ("loadout-disabled", "Edit loadout lobby")
    ]
    assert "After that, it is still off:" in dashboard.text(
        plugin_manager.get("/agents/ada/why/github__issue_write/")
    )


def test_an_override_without_effect_says_why(operator: Client, belt: None) -> None:
    factories.loadout("lobby", disabled=["github__issue_write"])
    agents.equip(SURE, "ada", "lobby")
    html = dashboard.text(dashboard.override(operator, "github__issue_write", "true", "unset"))
    assert "Saved, but github__issue_write is not on for ada: disabled by loadout lobby." in html
    html = dashboard.text(dashboard.override(operator, "github__issue_write", "true", "true"))
    assert "No changes: github__issue_write is not on for ada: disabled by loadout lobby." in html
    html = dashboard.text(dashboard.override(operator, "papers", "true", "unset"))
    assert "papers is on for ada." in html


def test_a_denied_risk_names_who_denies_it_and_where_that_is_changed(
    plugin_manager: Client, belt: None
) -> None:
    factories.loadout("lobby", denied_risks=["writes"])
    entries.change(SURE, "agent", "ada", {"denied_risks": ["writes"], "loadout": "lobby"})
    (decision,) = decisions(plugin_manager, "github__issue_write")
    assert (decision.decision.code, decision.control.words) == ("risk-denied", "Edit loadout lobby")

    agents.equip(SURE, "ada", "")
    (decision,) = decisions(plugin_manager, "github__issue_write")
    assert (decision.decision.origin, decision.control.words) == (
        ("agent", "ada", "writes"),
        "Edit the agent",
    )
