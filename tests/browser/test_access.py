"""Does every control of the Access page do its work in each look?"""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser import looks, operating
from tests.browser.conftest import OpensPage
from toolbelt import models
from toolbelt.store import snapshots

pytestmark = pytest.mark.browser

STATUS = "git__git_status"
# The same page with little on it.
OF_GIT = "/agents/runner/?q=git_"


@pytest.fixture
def runner(open_page: OpensPage) -> Page:
    """Give an operator's browser at an agent that works with Git."""
    return open_page("/agents/runner/")


@looks.in_each
def test_a_switch_is_flipped_and_taken_back(runner: Page) -> None:
    operating.switch(runner, "local_git").click()
    expect(operating.notice(runner)).to_contain_text("local_git is off for runner.")
    expect(operating.switch(runner, "local_git")).to_have_attribute("aria-checked", "false")
    expect(runner.get_by_role("region", name="Your last change")).to_contain_text("−12")
    expect(runner.locator("#agent-facts")).to_contain_text("38 of 509 tools")
    operating.undo(runner)
    expect(operating.switch(runner, "local_git")).to_have_attribute("aria-checked", "true")
    operating.section(runner, "local_git").get_by_role("button", name="Follow defaults").click()
    expect(operating.notice(runner)).to_contain_text("local_git follows the defaults for runner.")
    assert "local_git" not in snapshots.find("runner", None).agent.switches


@looks.in_each
def test_a_tool_is_denied_and_inherits_again(runner: Page) -> None:
    operating.opened(runner, "local_git")
    row = operating.row(runner, "local_git", STATUS)
    operating.choose(runner, "local_git", STATUS, "Off")
    expect(operating.notice(runner)).to_contain_text(f"{STATUS} is off for runner.")
    expect(row).to_contain_text("its override is off")
    expect(operating.section(runner, "local_git")).to_contain_text("11 of 12 active")
    operating.choose(runner, "local_git", STATUS, "Inherit")
    expect(row).to_contain_text("toolkit local_git is on")
    assert STATUS not in snapshots.find("runner", None).agent.overrides


@looks.in_each
def test_overrides_are_reset_and_brought_back_as_one(open_page: OpensPage) -> None:
    page = open_page(f"{OF_GIT}&open=toolkit-local_git")
    operating.choose(page, "local_git", STATUS, "Off")
    expect(operating.row(page, "local_git", STATUS)).to_contain_text("its override is off")
    operating.section(page, "local_git").get_by_role("button", name="Reset the overrides").click()
    expect(operating.notice(page)).to_contain_text("1 override of runner reset.")
    operating.undo(page)
    assert snapshots.find("runner", None).agent.overrides[STATUS] is False


@looks.in_each
def test_a_far_reaching_change_is_asked_about_and_its_reason_kept(open_page: OpensPage) -> None:
    page = open_page("/agents/runner/?q=issue_")
    operating.switch(page, "issues").click()
    question = operating.question(page)
    expect(question).to_contain_text("Turn on issues for runner?")
    expect(question).to_contain_text("Tools that can destroy something go on")
    assert looks.fits(page)
    operating.leave(page)
    expect(operating.switch(page, "issues")).to_have_attribute("aria-checked", "false")
    operating.switch(page, "issues").click()
    operating.question(page).get_by_label("Reason").fill("For the audit.")
    operating.question(page).get_by_role("button", name="Turn on").click()
    expect(operating.switch(page, "issues")).to_have_attribute("aria-checked", "true")
    assert models.AuditEntry.objects.get().reason == "For the audit."


@looks.in_each
def test_one_sees_what_it_would_change_before_it_changes(open_page: OpensPage) -> None:
    page = open_page(OF_GIT)
    menu = operating.more(page, "local_git")
    if not operating.runs_scripts(page):
        menu.get_by_role("link", name="What would it change?").click()
        menu = page.get_by_role("main")
    expect(menu).to_contain_text("−12 tools")
    assert not models.AuditEntry.objects.exists()


@looks.in_each
def test_the_filters_narrow_and_show_all_again(runner: Page) -> None:
    runner.get_by_role("searchbox").fill("git_status")
    runner.get_by_role("radio", name="Overridden").check(force=True)
    operating.save(runner.locator("#filter"), "Apply")
    expect(runner.get_by_role("heading", name="Nothing fits")).to_be_visible()
    runner.get_by_role("radio", name="Active").check(force=True)
    operating.save(runner.locator("#filter"), "Apply")
    expect(runner.locator("li.tool")).to_have_count(1)
    expect(runner).to_have_url(re.compile("q=git_status&show=active"))
    runner.get_by_role("link", name="Show all").click()
    expect(runner.locator(".section")).to_have_count(48)


@looks.in_each
def test_a_message_is_tried_beside_the_switches(open_page: OpensPage) -> None:
    page = open_page(OF_GIT)
    page.get_by_role("radio", name="Policy").check(force=True)
    expect(page.locator("#model-policy")).to_contain_text('<toolkit name="local_git">')
    page.get_by_role("radio", name="Directive").check(force=True)
    page.get_by_label("Try a message").fill("commit this")
    operating.save(page.locator("#try"), "Try")
    expect(page.locator("#model-directive")).to_contain_text("must call one")


@looks.in_each
def test_a_toolkit_is_off_for_two_hours(open_page: OpensPage) -> None:
    page = open_page(OF_GIT)
    operating.more(page, "local_git").get_by_role("button", name="2 hours").last.click()
    expect(operating.notice(page)).to_contain_text("local_git is off for runner until ")
    expect(operating.section(page, "local_git")).to_contain_text("left")
    assert "local_git" in snapshots.find("runner", None).agent.ends
    operating.undo(page)
    expect(operating.section(page, "local_git")).not_to_contain_text("left")


@looks.in_each
def test_a_toolkit_is_on_until_a_moment_that_one_names(open_page: OpensPage) -> None:
    page = open_page(OF_GIT)
    menu = operating.more(page, "local_git")
    menu.get_by_label("Until").fill("2099-05-01T12:30")
    menu.get_by_role("button", name="Off until then").click()
    expect(operating.notice(page)).to_contain_text("local_git is off for runner until ")
    expect(operating.notice(page)).to_contain_text("2099")
    assert snapshots.find("runner", None).agent.ends["local_git"].at.year == 2099


@looks.in_each
def test_a_toolkit_is_stopped_for_everyone_from_its_menu(open_page: OpensPage) -> None:
    page = open_page(OF_GIT)
    operating.more(page, "local_git").get_by_role("button", name="Stop for everyone").click()
    expect(operating.notice(page)).to_contain_text("local_git is stopped for everyone.")
    expect(operating.section(page, "local_git")).to_contain_text("0 of 12 active")
    assert snapshots.catalog().toolkits["local_git"].blocked
    operating.undo(page)
    assert not snapshots.catalog().toolkits["local_git"].blocked
