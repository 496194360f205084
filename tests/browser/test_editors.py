"""Tests that a loadout and a toolkit are edited in the dashboard, with a preview of what changes."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser import looks, operating
from tests.browser.conftest import OpensPage
from toolbelt.control import writing
from toolbelt.control.catalog import entries

pytestmark = pytest.mark.browser

OTTO = writing.by("otto", via="api")


@looks.with_scripts
def test_a_loadout_is_saved_after_it_was_shown_for_whom(open_page: OpensPage) -> None:
    page = open_page("/loadouts/")
    page.get_by_role("link", name=re.compile("^developer, extends minimal: ")).press("Enter")
    expect(page).to_have_url("/loadouts/developer/")
    page.locator(".picture-box", has_text="secure-review").locator("rect").click()
    page.get_by_role("link", name="Edit").click()
    page.get_by_role("group", name="Categories").get_by_label("memory", exact=True).check(force=True)
    page.get_by_label("Disabled").fill("git\n")
    page.get_by_role("button", name="Save changes", exact=True).click()
    question = page.get_by_role("dialog", name="Save loadout secure-review?")
    expect(question).to_contain_text("This changes what 1 of 12 agents gets")
    expect(question.locator(".reached")).to_contain_text("reviewer")
    expect(page).to_have_url("/loadouts/secure-review/edit/")
    assert entries.read("loadout", "secure-review")["disabled"] != ["git"]

    question.get_by_role("button", name="Back to editing").click()
    expect(question).to_have_count(0)
    expect(page.get_by_label("Disabled")).to_have_value("git\n")
    expect(page.get_by_role("button", name="Save changes", exact=True)).to_be_focused()
    page.get_by_role("button", name="Save changes", exact=True).click()
    question.get_by_label("Reason").fill("Git is elsewhere.")
    question.get_by_role("button", name="Save changes", exact=True).click()
    expect(operating.notice(page)).to_contain_text("Loadout secure-review saved.")
    assert entries.read("loadout", "secure-review")["disabled"] == ["git"]
    operating.notice(page).get_by_role("button", name="Undo").click()
    expect(operating.notice(page)).not_to_contain_text("saved")
    assert "desktop_commander" in entries.read("loadout", "secure-review")["disabled"]


@looks.with_scripts
def test_a_toolkit_is_edited_row_by_row_and_tried_while_it_is_typed(open_page: OpensPage) -> None:
    page = open_page("/toolkits/local_git/edit/")
    page.get_by_label("While at least one of its tools is on").fill("You have {active_tools}.")
    expect(page.locator("#tried")).to_contain_text("You have git__git_status, git__git_diff_unstaged")
    page.get_by_role("button", name="Move down: git__git_status").click()
    expect(page.locator(".rows").first.locator("code").first).to_have_text("git__git_diff_unstaged")
    page.get_by_label("Add tools").fill("time__get_current_time")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator(".rows").first).to_contain_text("time__get_current_time")

    page.get_by_role("button", name="Add trigger").click()
    # The form that came is listened to a moment after it is there.
    expect(page.locator("#editor")).to_contain_text("trigger 3")
    expect(page.locator(".htmx-added, .htmx-settling, .htmx-swapping")).to_have_count(0)
    patterns = page.get_by_label("Any of of trigger 3")
    patterns.fill("(oops")
    expect(page.get_by_text("'(oops' is not a pattern that runs in linear time (RE2)")).to_be_visible()
    patterns.fill("which day")
    page.get_by_label("Try a message").fill("which day is it")
    expect(page.get_by_text("matches first").first).to_be_visible()
    expect(page.get_by_text("'(oops' is not")).to_have_count(0)
    page.get_by_role("button", name="Save changes", exact=True).last.click()
    question = page.get_by_role("dialog", name="Save toolkit local_git?")
    expect(question.get_by_role("heading", name="Effect on agents")).to_be_visible()
    question.get_by_role("button", name="Save changes", exact=True).click()
    expect(operating.notice(page)).to_contain_text("Toolkit local_git saved.")
    stored = entries.read("toolkit", "local_git")
    assert stored["members"][0] == "git__git_diff_unstaged"
    assert stored["triggers"][2] == {"name": "trigger 3", "any": ["which day"]}


@looks.with_scripts
def test_what_is_wrong_is_shown_in_the_form_over_which_the_question_stood(open_page: OpensPage) -> None:
    page = open_page("/loadouts/secure-review/edit/", expects="status of (409|422)")
    page.get_by_label("Disabled").fill("git")
    page.get_by_label("Other plugins").fill("(none)")
    page.get_by_role("button", name="Save changes", exact=True).click()
    expect(page.get_by_label("Other plugins")).to_be_focused()
    expect(page.get_by_label("Disabled")).to_have_value("git")

    page.get_by_label("Other plugins").fill("")
    page.get_by_role("button", name="Save changes", exact=True).click()
    question = page.get_by_role("dialog")
    expect(question).to_be_visible()
    entries.change(OTTO, "loadout", "secure-review", {"disabled": ["fetch"]})
    question.get_by_role("button", name="Save changes", exact=True).click()
    expect(question).to_have_count(0)
    expect(page.get_by_role("alert")).to_contain_text("was changed by another operator")
    expect(page.get_by_role("alert")).to_be_in_viewport()
