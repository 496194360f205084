"""Are a loadout and a toolkit edited on the screen, with what that changes shown first, with scripts and without?"""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser import operating
from tests.browser.conftest import OpensPage
from toolbelt.control import entries
from toolbelt.store import snapshots

pytestmark = pytest.mark.browser


def test_a_loadout_is_saved_after_it_was_shown_for_whom(open_page: OpensPage) -> None:
    page = open_page("/loadouts/")
    page.get_by_role("link", name=re.compile("^developer, extends minimal: ")).press("Enter")
    expect(page).to_have_url("/loadouts/developer/")
    page.locator(".picture-box", has_text="secure-review").locator("rect").click()
    page.get_by_role("link", name="Edit").click()
    page.get_by_label("memory", exact=True).check(force=True)
    page.get_by_label("Disabled").fill("git\n")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("heading", name="Save the loadout secure-review?")).to_be_visible()
    expect(page.get_by_role("main")).to_contain_text("It changes what 1 of 12 agents gets")
    expect(page.locator(".reached")).to_contain_text("reviewer")
    assert entries.read("loadout", "secure-review")["disabled"] != ["git"]

    page.get_by_role("button", name="Back to the form").click()
    expect(page.get_by_label("Disabled")).to_have_value("git")
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_label("Reason").fill("Git is elsewhere.")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(operating.notice(page)).to_contain_text("The loadout secure-review is saved.")
    assert entries.read("loadout", "secure-review")["disabled"] == ["git"]
    operating.notice(page).get_by_role("button", name="Undo").click()
    expect(operating.notice(page)).not_to_contain_text("is saved")
    assert "desktop_commander" in entries.read("loadout", "secure-review")["disabled"]


def test_a_toolkit_is_edited_row_by_row_and_tried_while_it_is_typed(open_page: OpensPage) -> None:
    page = open_page("/toolkits/local_git/edit/")
    page.get_by_label("While one of its tools is active").fill("You have {active_tools}.")
    expect(page.locator("#tried")).to_contain_text("You have git__git_status, git__git_diff_unstaged")
    page.get_by_role("button", name="Move down: git__git_status").click()
    expect(page.locator(".rows").first.locator("code").first).to_have_text("git__git_diff_unstaged")
    page.get_by_label("Add tools").fill("time__get_current_time")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator(".rows").first).to_contain_text("time__get_current_time")

    page.get_by_role("button", name="Add a trigger").click()
    patterns = page.get_by_label("Any of of trigger 3")
    patterns.fill("(oops")
    expect(page.get_by_text("'(oops' is not a pattern that runs in linear time (RE2)")).to_be_visible()
    patterns.fill("which day")
    page.get_by_label("Try a message").fill("which day is it")
    expect(page.get_by_text("matches first").first).to_be_visible()
    expect(page.get_by_text("'(oops' is not")).to_have_count(0)
    page.get_by_role("button", name="Save", exact=True).last.click()
    expect(page.get_by_role("heading", name="What it changes for whom")).to_be_visible()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(operating.notice(page)).to_contain_text("The toolkit local_git is saved.")
    stored = entries.read("toolkit", "local_git")
    assert stored["members"][0] == "git__git_diff_unstaged"
    assert stored["triggers"][2] == {"name": "trigger 3", "any": ["which day"]}


def test_editing_works_without_scripts_on_a_phone(open_page: OpensPage) -> None:
    page = open_page("/sub-apps/war-room/edit/", width=390, java_script_enabled=False)
    page.get_by_role("button", name="Take out: time__get_current_time").click()
    page.get_by_label("Add tools").fill("fetch__fetch")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator(".rows")).to_contain_text("fetch__fetch")
    page.get_by_role("button", name="Save", exact=True).last.click()
    expect(page.get_by_role("heading", name="What it changes for whom")).to_be_visible()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(operating.notice(page)).to_contain_text("The sub-app war-room is saved.")
    assert snapshots.catalog().sub_apps["war-room"].tool_names == (
        "slack__slack_post_message",
        "fetch__fetch",
    )

    page.goto("/toolkits/local_git/edit/")
    page.get_by_label("While one of its tools is active").fill("You have {active_tools}.")
    page.get_by_role("button", name="Try", exact=True).click()
    expect(page.locator("#tried")).to_contain_text("You have git__git_status,")
