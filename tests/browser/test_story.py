"""Tests that a flip in the browser reaches the agent, and that undo restores everything."""

from __future__ import annotations

import io

import pytest
from django.core.management import call_command
from playwright.sync_api import Page, expect

from tests.browser import looks, operating
from tests.browser.conftest import OpensPage
from toolbelt import models

pytestmark = pytest.mark.browser

STATUS = "git__git_status"
ISSUE = "github__issue_read"


def surface(agent: str) -> str:
    """Ask as `manage.py surface` does."""
    said = io.StringIO()
    call_command("surface", agent, stdout=said)
    return said.getvalue()


@looks.with_scripts
def test_an_operator_turns_a_toolkit_off_and_takes_it_back(open_page: OpensPage) -> None:
    before = surface("runner")
    assert STATUS in before
    page = open_page("/agents/")
    page.get_by_role("link", name="runner").click()
    facts = page.locator("#agent-facts")
    expect(facts).to_contain_text("52 of 529 tools")

    switch = operating.switch(page, "local_git")
    expect(switch).to_have_attribute("aria-checked", "true")
    switch.click()

    expect(switch).to_have_attribute("aria-checked", "false")
    expect(facts).to_contain_text("40 of 529 tools")
    expect(facts).to_contain_text("olive turned off local_git")
    expect(operating.notice(page)).to_contain_text("local_git is off for runner.")
    expect(page.get_by_role("region", name="Your last change")).to_contain_text("Tokens")
    expect(operating.section(page, "local_git")).to_contain_text("0 of 12 on")
    operating.opened(page, "local_git")
    expect(operating.row(page, "local_git", STATUS)).to_contain_text("toolkit local_git is off")
    expect(page.locator("#live")).to_contain_text("local_git is off for runner.")

    while_off = surface("runner")
    assert STATUS not in while_off
    assert while_off.partition("Policy:")[2] != before.partition("Policy:")[2]

    operating.notice(page).get_by_role("button", name="Undo").click()
    expect(switch).to_have_attribute("aria-checked", "true")
    expect(operating.row(page, "local_git", STATUS)).to_contain_text("toolkit local_git is on")
    expect(facts).to_contain_text("52 of 529 tools")
    expect(operating.notice(page)).to_contain_text("Undone: olive turned off local_git.")
    assert _but_for_the_revision(surface("runner")) == _but_for_the_revision(before)

    page.goto("/audit/")
    entries = page.locator(".entry")
    expect(entries).to_have_count(2)
    expect(entries.nth(0)).to_contain_text("olive undid a change: turned on Local Git local_git for runner")
    expect(entries.nth(1)).to_contain_text("olive turned off Local Git local_git for runner")
    expect(entries.nth(1)).to_contain_text("undone by olive")
    assert set(models.AuditEntry.objects.values_list("via", flat=True)) == {"screen"}


def test_the_panel_follows_each_change(access: Page) -> None:
    size = access.locator("#model-size")
    expect(size).to_contain_text("53 tools")
    access.get_by_role("radio", name="Policy").check(force=True)
    expect(access.locator("#model-policy")).to_contain_text('<toolkit name="tickets">')
    operating.switch(access, "tickets").click()
    expect(size).not_to_contain_text("53 tools")
    expect(access.locator("#model-policy")).not_to_contain_text('<toolkit name="tickets">')
    access.get_by_role("radio", name="Directive").check(force=True)
    access.get_by_label("Try a message").fill("find a paper about sleep")
    expect(access.locator("#model-directive")).to_contain_text("the model focuses on")


def test_a_far_reaching_change_is_asked_about_and_its_reason_kept(access: Page) -> None:
    switch = operating.switch(access, "issues")
    switch.click()
    question = access.get_by_role("dialog", name="Turn on issues for assistant?")
    expect(question).to_contain_text("Enables destructive tools")
    expect(question).to_contain_text("add_issue_comment")
    expect(question.get_by_role("button", name="Cancel")).to_be_focused()
    question.get_by_role("button", name="Cancel").click()
    expect(question).to_have_count(0)
    expect(switch).to_be_focused()
    expect(switch).to_have_attribute("aria-checked", "false")
    assert not models.AuditEntry.objects.exists()

    switch.click()
    question.get_by_label("Reason").fill("Release week.")
    question.get_by_role("button", name="Turn on").click()
    expect(question).to_have_count(0)
    expect(switch).to_have_attribute("aria-checked", "true")
    expect(switch).to_be_focused()
    assert models.AuditEntry.objects.get().reason == "Release week."


def test_an_override_that_is_asked_about_shows_what_is_stored_until_it_is_answered(access: Page) -> None:
    operating.opened(access, "release_work")
    tool = access.locator("[data-section='toolkit-release_work'] li.tool", has_text="destructive").first
    on, inherit = tool.get_by_role("radio", name="On", exact=True), tool.get_by_role("radio", name="Default")
    on.check(force=True)
    question = access.get_by_role("dialog")
    expect(question).to_be_visible()
    expect(inherit).to_be_checked()
    access.keyboard.press("Escape")
    expect(question).to_have_count(0)
    expect(inherit).to_be_checked()


def test_overrides_of_a_section_are_reset_and_brought_back_as_one(access: Page) -> None:
    section = operating.opened(access, "team_chat")
    for tool in ("slack__slack_list_channels", "slack__slack_post_message"):
        operating.choice(access, "team_chat", tool, "Off").check(force=True)
        expect(operating.row(access, "team_chat", tool)).to_contain_text("its override is off")
    expect(section).to_contain_text("3 overrides")
    expect(access.locator("#count-overridden")).to_have_text("6")
    section.get_by_role("button", name="Reset overrides").click()
    expect(access.get_by_role("dialog")).to_be_visible()
    access.get_by_role("dialog").get_by_role("button", name="Reset to default").click()
    expect(section.get_by_role("button", name="Reset overrides")).to_have_count(0)
    expect(access.locator("#count-overridden")).to_have_text("3")
    operating.notice(access).get_by_role("button", name="Undo").click()
    expect(section).to_contain_text("3 overrides")
    expect(operating.choice(access, "team_chat", "slack__slack_get_users", "Off")).to_be_checked()


def test_the_filter_narrows_while_one_types_and_going_back_shows_the_whole_page(access: Page) -> None:
    every = access.locator(".section").count()
    access.get_by_role("searchbox").fill("pull_request")
    expect(access.get_by_text("sections.").first).to_be_visible()
    access.wait_for_url("**/agents/assistant/?q=pull_request*")
    rows = access.locator("li.tool")
    expect(rows.first).to_contain_text("pull_request")
    operating.choice(access, "code_review", "github__pull_request_read", "On").check(force=True)
    expect(operating.row(access, "code_review", "github__pull_request_read")).to_contain_text(
        "its override is on"
    )
    access.get_by_role("link", name="Audit log").first.click()
    expect(access.get_by_role("heading", name="Audit log")).to_be_visible()
    access.go_back()
    expect(access.get_by_role("heading", name="assistant", exact=True)).to_be_visible()
    expect(operating.choice(access, "code_review", "github__pull_request_read", "On")).to_be_checked()
    access.get_by_role("link", name="Show all").click()
    expect(access.locator(".section")).to_have_count(every)


def _but_for_the_revision(said: str) -> str:
    return said.partition("\n")[2]


def test_the_access_of_an_agent_fits_a_screen_and_a_half(open_page: OpensPage) -> None:
    page = open_page("/agents/assistant/")
    page.set_viewport_size({"width": 1440, "height": 900})
    assert page.evaluate("document.documentElement.scrollHeight") <= 1350
    heights = page.locator(".section:visible .section-head").evaluate_all(
        "(rows) => rows.map((row) => row.offsetHeight)"
    )
    assert len(heights) > 10
    assert {height for height in heights if not 44 <= height <= 48} == set()
