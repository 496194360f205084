"""Tests of the list of toolkits, a toolkit's page, and their query counts."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import models as auth
from django.test import Client

from tests import factories
from tests.web import dashboard
from toolbelt import models
from toolbelt.control.catalog import entries
from toolbelt.core.rules import reasons
from toolbelt.testing import OPERATOR

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]

ISSUES = "/toolkits/issues/"
BLOCK = "/toolkits/issues/block/"


@pytest.fixture
def toolkit_manager(operator: Client, olive: auth.User) -> Client:
    """Return the browser of an operator who may also change toolkits."""
    olive.user_permissions.add(auth.Permission.objects.get(codename="change_toolkit"))
    return operator


def listed(browser: Client, **query: str) -> Any:
    return browser.get("/toolkits/", query).context["page"]


def open_page(browser: Client, **query: str) -> Any:
    return browser.get(ISSUES, query).context["page"]


def keys(page: Any) -> list[str]:
    return [line.key for line in page.toolkits]


def cell(page: Any, agent: str) -> Any:
    return next(cell for cell in page.cells if cell.agent == agent)


def test_each_row_shows_the_toolkits_size_and_agents(viewer: Client) -> None:
    issues, releases, research = listed(viewer).toolkits
    assert (issues.key, issues.title, issues.description) == (
        "issues",
        "Issues and reviews",
        "Reads and files issues.",
    )
    assert (issues.tools, issues.users, issues.percent, issues.switched) == ("2", "2 of 2", 100, "on for 1")
    # Tools shared by two toolkits count for both.
    assert (releases.title, releases.users) == ("releases", "2 of 2")
    assert (research.users, research.percent, research.switched) == ("0 of 2", 0, "")


def test_blocked_toolkits_and_toolkits_in_code_are_marked(viewer: Client) -> None:
    models.Toolkit.objects.filter(key="research").update(blocked=True, plugin="github")
    marks = [(mark.word, mark.tone) for mark in listed(viewer).toolkits[2].marks]
    assert marks == [("blocked for everyone", "danger"), ("from plugin github", "quiet")]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, ["issues", "releases", "research"]),
        ({"q": "REVIEWS"}, ["issues"]),
        ({"q": "papers"}, ["research"]),
        ({"show": "used"}, ["issues", "releases"]),
        ({"show": "unused"}, ["research"]),
        ({"show": "blocked"}, []),
        ({"show": "nonsense"}, ["issues", "releases", "research"]),
        ({"sort": "-toolkit"}, ["research", "releases", "issues"]),
        ({"sort": "tools"}, ["research", "issues", "releases"]),
        ({"sort": "nonsense"}, ["issues", "releases", "research"]),
    ],
)
def test_the_list_is_filtered_and_sorted_by_query_parameters(
    viewer: Client, query: dict[str, str], expected: list[str]
) -> None:
    assert keys(listed(viewer, **query)) == expected


def test_numeric_columns_sort_descending_first_and_then_toggle(viewer: Client) -> None:
    column = listed(viewer, q="e").columns[1]
    assert (column.order, column.url) == ("", "/toolkits/?q=e&sort=-tools")
    column = listed(viewer, q="e", sort="-tools").columns[1]
    assert (column.order, column.url) == ("descending", "/toolkits/?q=e&sort=tools")


def test_an_htmx_filter_request_returns_only_the_table_and_count(viewer: Client) -> None:
    html = dashboard.text(viewer.get("/toolkits/", {"q": "papers"}, headers=dashboard.HTMX))
    assert '<p id="matches" hx-swap-oob="innerHTML">1 toolkit in the order of the policy</p>' in html
    assert "<html" not in html
    assert "No matching toolkits" in dashboard.text(viewer.get("/toolkits/", {"q": "nothing"}))


def test_an_empty_list_shows_an_empty_state(viewer: Client) -> None:
    models.Agent.objects.all().delete()
    models.Toolkit.objects.all().delete()
    assert "No toolkits yet" in dashboard.text(viewer.get("/toolkits/"))


def test_a_toolkit_shows_its_tools_with_risk_note_and_unavailability(viewer: Client) -> None:
    models.Plugin.objects.filter(name="github").update(status="failed")
    models.Toolkit.objects.filter(key="issues").update(tool_notes={"github__issue_read": "Look here first."})
    read, write = open_page(viewer).members
    assert (read.tool.key, read.note) == ("github__issue_read", "Look here first.")
    assert (write.closed.state, reasons.explain(write.closed)) == ("unavailable", "plugin github has failed")
    html = dashboard.text(viewer.get("/toolkits/issues/"))
    assert '<span class="risk read-only">' in html
    assert '<span class="risk writes">' in html


def test_each_agent_shows_its_state_of_the_toolkit_and_the_reason(viewer: Client) -> None:
    page = open_page(viewer)
    ada, bob = cell(page, "ada"), cell(page, "bob")
    assert (ada.switch.stored, ada.switch.words, ada.word, ada.reason) == (
        "true",
        "On",
        "2 of 2 on",
        "toolkit issues is on",
    )
    assert (bob.switch.stored, bob.switch.words, bob.switch.basis) == ("unset", "On", "Default")
    assert bob.protected
    assert page.users == "2 of 2"


def test_a_viewer_sees_states_without_controls(viewer: Client) -> None:
    html = dashboard.text(viewer.get(ISSUES))
    assert "<strong>On</strong>" in html
    assert 'role="switch"' not in html
    assert "Block for everyone" not in html
    assert "Edit in the admin" not in html


def test_a_flip_updates_only_the_displayed_parts_of_the_agent(operator: Client) -> None:
    response = dashboard.switch(operator, "issues", "false", "true", cells="issues", next=ISSUES)
    html = dashboard.text(response)
    assert response.headers["HX-Trigger"] == '{"flipped": {}}'
    assert '<div id="at:ada:issues:state" hx-swap-oob="innerHTML">' in html
    assert '<input type="hidden" name="was" value="false"' in html
    assert "toolkit issues is off" in html
    assert '<span id="used:issues" hx-swap-oob="innerHTML">' in html
    assert "1 of 2" in html
    assert "issues is off for ada." in html
    # No parts of other agents or of the Access page.
    assert "at:bob:" not in html
    assert "agent-facts" not in html
    assert dashboard.stored_agent().switches["issues"] is False


def test_flipping_for_a_protected_agent_requires_confirmation(operator: Client) -> None:
    response = dashboard.switch(operator, "issues", "true", "unset", agent="bob", cells="issues", next=ISSUES)
    assert "bob is protected." in dashboard.text(response)
    assert "issues" not in dashboard.stored_agent("bob").switches


def test_a_conflicting_flip_returns_the_current_state(operator: Client) -> None:
    response = dashboard.switch(operator, "issues", "false", "unset", cells="issues", next=ISSUES)
    assert response.status_code == 409
    assert '<input type="hidden" name="was" value="true"' in dashboard.text(response)


def test_undoing_a_flip_updates_the_displayed_parts(operator: Client) -> None:
    dashboard.switch(operator, "issues", "false", "true")
    response = dashboard.post(
        operator, f"/audit/{dashboard.latest_entry().pk}/undo/", cells="issues", next=ISSUES
    )
    assert "at:ada:issues:state" in dashboard.text(response)
    assert dashboard.stored_agent().switches["issues"] is True


def test_without_htmx_a_flip_redirects_to_the_toolkit_with_a_notice(operator: Client) -> None:
    response = dashboard.switch(operator, "issues", "false", "true", htmx=False, next=ISSUES)
    assert (response.status_code, response.headers["Location"]) == (303, ISSUES)
    assert open_page(operator).notice.text == "Issues and reviews `issues` is off for ada."


def test_the_policy_preview_assumes_all_tools_by_default(viewer: Client) -> None:
    preview = viewer.get("/toolkits/releases/").context["page"].preview
    assert preview.policy == "Ask first: github__merge, github__issue_read."
    assert (preview.written, preview.active, preview.off) == (
        "Ask first: {active_tools}.",
        "2 of 2 tools on",
        False,
    )


def test_the_policy_preview_applies_to_the_chosen_agent(operator: Client) -> None:
    preview = operator.get("/toolkits/releases/", {"whose": "ada"}).context["page"].preview
    assert (preview.policy, preview.active) == ("Ask first: github__issue_read.", "1 of 2 tools on")
    dashboard.switch(operator, "issues", "false", "true")
    preview = open_page(operator, whose="ada").preview
    assert (preview.policy, preview.off) == ("You cannot see issues.", True)
    html = dashboard.text(operator.get(ISSUES, {"message": "a bug", "whose": "ada"}))
    assert "No directive: none of its tools is on, so its triggers do not apply." in html


def test_a_trial_message_is_matched_against_every_trigger(viewer: Client) -> None:
    more = [
        {"name": "file", "any": ["bug"], "focus": ["github__issue_write"], "tool_choice": "required"},
        {"name": "any word", "all": [["bug", "wish"]], "none": ["secret"]},
    ]
    entries.change(OPERATOR, "toolkit", "issues", {"triggers": more})
    preview = open_page(viewer, message="There is a bug.").preview
    assert [(trial.trigger.name, trial.fires, trial.decides) for trial in preview.triggers] == [
        ("file", True, True),
        ("any word", True, False),
    ]
    assert (preview.focus.tools, preview.focus.because) == (("github__issue_write",), "file")
    preview = open_page(viewer, message="A wish.").preview
    assert [trial.decides for trial in preview.triggers] == [False, True]
    assert preview.focus.tools == ("github__issue_read", "github__issue_write")
    for message, sentence in (
        ("There is a bug.", "The first step focuses on 1 tool and must call one."),
        ("A wish.", "The first step focuses on 2 tools."),
        ("Good morning.", "No directive: no trigger matches this message."),
    ):
        assert sentence in dashboard.text(viewer.get(ISSUES, {"message": message}))
    assert "The message</h3>" not in dashboard.text(viewer.get(ISSUES))


def test_a_trial_message_uses_the_chosen_agents_tools(operator: Client) -> None:
    dashboard.override(operator, "github__issue_write", "false", "unset")
    html = dashboard.text(operator.get(ISSUES, {"message": "a bug", "whose": "ada"}))
    assert "No directive: none of the tools to focus on is on." in html


def test_an_htmx_trial_message_returns_only_its_outcome(viewer: Client) -> None:
    html = dashboard.text(viewer.get(ISSUES, {"message": "a <bug>"}, headers=dashboard.HTMX))
    assert "matches first" in html
    assert "<html" not in html


def test_a_toolkit_in_code_names_its_plugin_and_keeps_its_switches(toolkit_manager: Client) -> None:
    models.Toolkit.objects.filter(key="issues").update(plugin="github")
    html = dashboard.text(toolkit_manager.get(ISSUES))
    assert 'code of the plugin <a href="/plugins/github/">github</a>' in html
    assert 'role="switch"' in html
    assert "Block for everyone" in html


def test_a_toolkit_is_blocked_for_everyone_and_unblocked(toolkit_manager: Client) -> None:
    response = dashboard.post(toolkit_manager, BLOCK, on="true", was="false", next=ISSUES)
    html = dashboard.text(response)
    assert "issues is blocked for everyone." in html
    assert "Unblock" in html
    assert "toolkit issues is blocked for everyone" in html
    assert "at:ada:issues:state" in html
    page = open_page(toolkit_manager)
    assert (page.blocked, cell(page, "ada").word) == (True, "Blocked")
    dashboard.post(toolkit_manager, f"/audit/{dashboard.latest_entry().pk}/undo/", htmx=False)
    assert open_page(toolkit_manager).blocked is False


def test_without_htmx_blocking_redirects_back(toolkit_manager: Client) -> None:
    response = dashboard.post(
        toolkit_manager, BLOCK, htmx=False, on="true", was="false", next=ISSUES, reason="Leaks."
    )
    assert (response.status_code, response.headers["Location"]) == (303, ISSUES)
    assert open_page(toolkit_manager).notice.text == "Issues and reviews `issues` is blocked for everyone."
    assert (dashboard.latest_entry().action, dashboard.latest_entry().reason) == ("toolkit.change", "Leaks.")


def test_a_stale_or_invalid_block_is_refused(toolkit_manager: Client) -> None:
    assert dashboard.post(toolkit_manager, BLOCK, on="false", was="true").status_code == 409
    assert dashboard.post(toolkit_manager, BLOCK, on="perhaps", was="false").status_code == 422
    assert (
        dashboard.post(toolkit_manager, "/toolkits/nothing/block/", on="true", was="false").status_code == 404
    )
    assert not models.Toolkit.objects.get(key="issues").blocked


def test_an_unknown_toolkit_is_not_found(viewer: Client) -> None:
    assert viewer.get("/toolkits/nothing/").status_code == 404


def test_hostile_texts_are_escaped(viewer: Client) -> None:
    evil = "<script>alert(1)</script>"
    models.Toolkit.objects.filter(key="issues").update(
        title=evil, description=evil, policy=evil, examples=evil
    )
    models.Tool.objects.filter(key="github__issue_read").update(description=evil)
    for address in (ISSUES, "/toolkits/", f"{ISSUES}?message={evil}&whose={evil}"):
        html = viewer.get(address).content.decode()
        assert evil not in html
        assert "&lt;script&gt;" in html


def test_query_counts_do_not_grow_with_toolkits_and_agents(operator: Client, more_tools: Any) -> None:
    def cost(address: str) -> int:
        operator.get(address)
        return dashboard.count_queries(lambda: operator.get(address))

    before = cost("/toolkits/"), cost(ISSUES)
    more_tools(60)
    for number in range(9):
        factories.agent(f"agent-{number}")
    assert (cost("/toolkits/"), cost(ISSUES)) == before
    assert max(before) <= 14
