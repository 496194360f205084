"""Tests of the Access page: switches, overrides, confirmations, filters, menus, and what the agent then gets."""

from __future__ import annotations

import io

import pytest
from django.core.management import call_command
from playwright.sync_api import Page, expect

from tests.browser import dashboard, devices, network
from tests.browser.conftest import OpensPage
from toolbelt import models
from toolbelt.store import snapshots

pytestmark = pytest.mark.browser

STATUS = "git__git_status"


def surface(agent: str) -> str:
    """Return what `manage.py surface` prints."""
    output = io.StringIO()
    call_command("surface", agent, stdout=output)
    return output.getvalue()


def without_revision(output: str) -> str:
    return output.partition("\n")[2]


def test_turning_a_toolkit_off_reaches_the_agent_and_undo_restores_everything(open_page: OpensPage) -> None:
    before = surface("runner")
    assert STATUS in before
    page = open_page("/agents/")
    page.get_by_role("link", name="runner").click()
    facts = page.locator("#agent-facts")
    expect(facts).to_contain_text("52 of 529 tools")

    switch = dashboard.switch(page, "local_git")
    expect(switch).to_have_attribute("aria-checked", "true")
    switch.click()

    expect(switch).to_have_attribute("aria-checked", "false")
    expect(facts).to_contain_text("40 of 529 tools")
    expect(facts).to_contain_text("olive turned off Local Git")
    expect(dashboard.notice(page)).to_contain_text("local_git is off for Runner runner.")
    expect(page.get_by_role("region", name="Your last change")).to_contain_text("Tokens")
    expect(dashboard.section(page, "local_git")).to_contain_text("0 of 12 on")
    dashboard.open_section(page, "local_git")
    expect(dashboard.tool_row(page, "local_git", STATUS)).to_contain_text("toolkit local_git is off")
    expect(page.locator("#live")).to_contain_text("local_git is off for Runner runner.")

    while_off = surface("runner")
    assert STATUS not in while_off
    assert while_off.partition("Policy:")[2] != before.partition("Policy:")[2]

    dashboard.notice(page).get_by_role("button", name="Undo").click()
    expect(switch).to_have_attribute("aria-checked", "true")
    expect(dashboard.tool_row(page, "local_git", STATUS)).to_contain_text("toolkit local_git is on")
    expect(facts).to_contain_text("52 of 529 tools")
    expect(dashboard.notice(page)).to_contain_text("Undone: olive turned off Local Git local_git.")
    assert without_revision(surface("runner")) == without_revision(before)

    page.goto("/audit/")
    entries = page.locator(".entry")
    expect(entries).to_have_count(2)
    expect(entries.nth(0)).to_contain_text(
        "olive undid a change; this turned on Local Git local_git for Runner runner"
    )
    expect(entries.nth(1)).to_contain_text("olive turned off Local Git local_git for Runner runner")
    expect(entries.nth(1)).to_contain_text("undone by olive")
    assert set(models.AuditEntry.objects.values_list("via", flat=True)) == {"screen"}


def test_the_panel_follows_each_change_and_the_back_button_restores_the_filter(access: Page) -> None:
    size = access.locator("#model-size")
    expect(size).to_contain_text("53 tools")
    access.get_by_role("radio", name="Policy").check(force=True)
    expect(access.locator("#model-policy")).to_contain_text('<toolkit name="tickets">')
    dashboard.switch(access, "tickets").click()
    expect(size).not_to_contain_text("53 tools")
    expect(access.locator("#model-policy")).not_to_contain_text('<toolkit name="tickets">')
    access.get_by_role("radio", name="Directive").check(force=True)
    access.get_by_label("Try a message").fill("find a paper about sleep")
    expect(access.locator("#model-directive")).to_contain_text("the model focuses on")

    count = access.locator(".section").count()
    access.get_by_role("searchbox").fill("pull_request")
    expect(access.get_by_text("sections.").first).to_be_visible()
    access.wait_for_url("**/agents/assistant/?*q=pull_request*")
    expect(access.locator("li.tool").first).to_contain_text("pull_request")
    on = dashboard.override(access, "code_review", "github__pull_request_read", "On")
    on.check(force=True)
    row = dashboard.tool_row(access, "code_review", "github__pull_request_read")
    expect(row).to_contain_text("its override is on")
    access.get_by_role("link", name="Audit log").first.click()
    expect(access.get_by_role("heading", name="Audit log")).to_be_visible()
    access.go_back()
    expect(access.get_by_role("heading", name="Assistant", exact=True)).to_be_visible()
    expect(on).to_be_checked()
    access.get_by_role("link", name="Show all").click()
    expect(access.locator(".section")).to_have_count(count)


def test_controls_show_what_is_stored_until_a_change_is_confirmed(access: Page) -> None:
    switch = dashboard.switch(access, "issues")
    switch.click()
    confirmation = access.get_by_role("dialog", name="Turn on Issues issues for Assistant assistant?")
    expect(confirmation).to_contain_text("Enables destructive tools")
    expect(confirmation).to_contain_text("add_issue_comment")
    expect(confirmation.get_by_role("button", name="Cancel")).to_be_focused()
    confirmation.get_by_role("button", name="Cancel").click()
    expect(confirmation).to_have_count(0)
    expect(switch).to_be_focused()
    expect(switch).to_have_attribute("aria-checked", "false")
    assert not models.AuditEntry.objects.exists()

    switch.click()
    confirmation.get_by_label("Reason").fill("Release week.")
    confirmation.get_by_role("button", name="Turn on").click()
    expect(confirmation).to_have_count(0)
    expect(switch).to_have_attribute("aria-checked", "true")
    expect(switch).to_be_focused()
    assert models.AuditEntry.objects.get().reason == "Release week."

    tool = dashboard.open_section(access, "release_work").locator("li.tool", has_text="destructive").first
    tool.get_by_role("radio", name="On", exact=True).check(force=True)
    expect(access.get_by_role("dialog")).to_be_visible()
    expect(tool.get_by_role("radio", name="Default")).to_be_checked()
    access.keyboard.press("Escape")
    expect(access.get_by_role("dialog")).to_have_count(0)
    expect(tool.get_by_role("radio", name="Default")).to_be_checked()


def test_the_overrides_of_a_section_are_reset_and_undone_together(access: Page) -> None:
    section = dashboard.open_section(access, "team_chat")
    for tool in ("slack__slack_list_channels", "slack__slack_post_message"):
        dashboard.override(access, "team_chat", tool, "Off").check(force=True)
        expect(dashboard.tool_row(access, "team_chat", tool)).to_contain_text("its override is off")
    expect(section).to_contain_text("3 overrides")
    expect(access.locator("#count-overridden")).to_have_text("6")
    section.get_by_role("button", name="Reset overrides").click()
    dashboard.confirmation(access).get_by_role("button", name="Reset to default").click()
    expect(section.get_by_role("button", name="Reset overrides")).to_have_count(0)
    expect(access.locator("#count-overridden")).to_have_text("3")
    dashboard.notice(access).get_by_role("button", name="Undo").click()
    expect(section).to_contain_text("3 overrides")
    expect(dashboard.override(access, "team_chat", "slack__slack_get_users", "Off")).to_be_checked()


@devices.on_phone
def test_menus_show_their_effects_when_opened_and_change_tools_for_a_time_or_in_bulk(
    open_page: OpensPage,
) -> None:
    page = open_page("/agents/runner/?q=git_st")
    with network.recorded_requests(page, "/effect/") as effects:
        expect(dashboard.open_actions(page, "local_git")).to_contain_text("−12 tools")
        page.keyboard.press("Escape")
        dashboard.tool_row(page, "local_git", STATUS).locator(".acts-opener").click()
        expect(dashboard.open_menu(page)).to_contain_text("−1 tool")
        page.keyboard.press("Escape")
    assert effects == ["local_git/", f"{STATUS}/"]

    # On, off, and blocked for everyone.
    dashboard.open_actions(page, "local_git").get_by_role("button", name="2 hours").nth(1).click()
    expect(dashboard.notice(page)).to_contain_text("local_git is off for Runner runner until ")
    expect(dashboard.section(page, "local_git")).to_contain_text("left")
    assert "local_git" in snapshots.find("runner", None).agent.ends
    dashboard.undo(page)
    expect(dashboard.section(page, "local_git")).not_to_contain_text("left")

    page.get_by_text("Bulk actions").click()
    page.locator(".bulk-menu button[value=tools-false]").click()
    expect(dashboard.confirmation(page)).to_contain_text("Turn off ")
    assert devices.layout_problems(page) == []
    dashboard.confirmation(page).get_by_role("button", name="Turn off: ").click()
    expect(dashboard.notice(page)).to_contain_text("for Runner runner: off.")
    assert snapshots.find("runner", None).agent.overrides[STATUS] is False
    dashboard.undo(page)
    assert STATUS not in snapshots.find("runner", None).agent.overrides
