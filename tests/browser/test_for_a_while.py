"""Is something given for a while, or set alike with all that is shown, in a few clicks, with and without a script?"""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser import operating
from tests.browser.conftest import OpensPage
from toolbelt.store import snapshots

pytestmark = pytest.mark.browser


def menu(page: Page, toolkit: str) -> None:
    operating.section(page, toolkit).locator(".section-head .acts-opener").click()


@pytest.mark.parametrize("scripts", [True, False])
def test_a_toolkit_is_off_for_two_hours(open_page: OpensPage, scripts: bool) -> None:
    page = open_page("/agents/runner/", java_script_enabled=scripts)
    menu(page, "local_git")
    if scripts:
        expect(page.locator(".acts-body:popover-open")).to_contain_text("−12 tools")
    page.locator(".acts-body:popover-open").get_by_role("button", name="2 hours").last.click()

    expect(operating.notice(page)).to_contain_text("local_git is off for runner until ")
    expect(operating.section(page, "local_git")).to_contain_text("left")
    assert "local_git" in snapshots.find("runner", None).agent.ends
    operating.notice(page).get_by_role("button", name="Undo").click()
    expect(operating.section(page, "local_git")).not_to_contain_text("left")


@pytest.mark.parametrize("scripts", [True, False])
def test_all_that_is_shown_is_set_after_a_look_and_undone_as_one(open_page: OpensPage, scripts: bool) -> None:
    page = open_page("/agents/runner/?q=git_st", java_script_enabled=scripts)
    page.get_by_text("All shown").click()
    page.locator(".bulk-menu button[value=tools-false]").click()
    expect(page.get_by_role("heading", name="Turn off ")).to_be_visible()
    page.get_by_role("button", name="Turn off: ").click()

    expect(operating.notice(page)).to_contain_text("for runner: off.")
    assert snapshots.find("runner", None).agent.overrides["git__git_status"] is False
    operating.notice(page).get_by_role("button", name="Undo").click()
    expect(operating.notice(page)).to_contain_text("Undone")
    assert "git__git_status" not in snapshots.find("runner", None).agent.overrides
