"""Tests that a loadout and a toolkit are edited in the dashboard, with a preview of what changes."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Dialog, Page, expect

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


def _let_settle(page: Page) -> None:
    """Wait until htmx listens to the form that it swapped in: 20 ms later, which is sooner than a person can type."""
    expect(page.locator(".htmx-added, .htmx-settling, .htmx-swapping, .htmx-request")).to_have_count(0)


@looks.with_scripts
def test_a_toolkit_is_edited_row_by_row_and_tried_while_it_is_typed(open_page: OpensPage) -> None:
    page = open_page("/toolkits/local_git/edit/")
    page.get_by_label("While at least one of its tools is on").fill("You have {active_tools}.")
    expect(page.locator("#preview-result")).to_contain_text(
        "You have git__git_status, git__git_diff_unstaged"
    )
    page.get_by_role("button", name="Move down: git__git_status").click()
    expect(page.locator(".rows").first.locator("code").first).to_have_text("git__git_diff_unstaged")
    _let_settle(page)
    page.get_by_role("button", name="Add trigger").click()
    expect(page.locator("#editor")).to_contain_text("trigger 3")
    _let_settle(page)
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
def test_tools_are_found_by_words_or_keys_and_added_from_the_keyboard(open_page: OpensPage) -> None:
    page = open_page("/toolkits/local_git/edit/")
    # Typed, chosen with the arrow keys, and added with Enter, which saves nothing.
    finder = page.get_by_role("combobox", name="Add tools")
    finder.press_sequentially("current time")
    options = page.get_by_role("listbox", name="Matching tools").get_by_role("option")
    expect(options.first).to_have_attribute("aria-selected", "true")
    finder.press("ArrowDown")
    expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    expect(finder).to_have_attribute("aria-activedescendant", "tool-option-2")
    finder.press("Escape")
    expect(options).to_have_count(0)
    finder.press("ArrowDown")
    finder.press("Home")
    key = options.first.get_attribute("data-value")
    expect(options.first).to_have_attribute("aria-selected", "true")
    finder.press("Enter")
    expect(page.locator(".rows").first.locator("code").last).to_have_text(str(key))
    expect(finder).to_be_focused()
    expect(finder).to_have_value("")
    finder.press("Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name=f"Remove: {key}").click()
    expect(page.locator(".rows").first).not_to_contain_text(str(key))

    # Several keys at once: all that exist, and the others are named.
    _let_settle(page)
    finder.fill("time__get_current_time, time__convert_time time__no_such")
    expect(options.first).to_contain_text("Add 2 tools")
    finder.press("Enter")
    keys = page.locator(".rows").first.locator("code")
    expect(keys.nth(-2)).to_have_text("time__get_current_time")
    expect(keys.last).to_have_text("time__convert_time")
    expect(page.get_by_text("No tool is called time__no_such. The others were added.")).to_be_visible()
    # Enter does not wait for the options.
    _let_settle(page)
    finder.fill("fetch__fetch arxiv")
    finder.press("Enter")
    expect(keys.last).to_have_text("arxiv")
    expect(finder).to_have_value("")
    for key in ("time__get_current_time", "time__convert_time", "fetch__fetch", "arxiv"):
        _let_settle(page)
        page.get_by_role("button", name=f"Remove: {key}").click()
        expect(keys.get_by_text(key, exact=True)).to_have_count(0)
    # All that words find.
    _let_settle(page)
    finder.fill("current time")
    page.get_by_role("option", name="Add all").click()
    expect(keys.get_by_text("time__get_current_time")).to_be_visible()


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


@looks.with_scripts
def test_leaving_an_editor_with_unsaved_changes_is_asked_about(open_page: OpensPage) -> None:
    asked = []

    def stay(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    page = open_page("/loadouts/secure-review/edit/")
    page.on("dialog", stay)
    page.get_by_label("Disabled").press_sequentially("x")
    cancel = page.get_by_role("link", name="Cancel")
    expect(cancel).to_be_in_viewport(ratio=1)
    cancel.click(no_wait_after=True)
    expect(page.get_by_label("Disabled")).to_have_value(re.compile("x"))
    page.get_by_label("Disabled").press("Backspace")
    cancel.click()
    expect(page).to_have_url("/loadouts/secure-review/")
    assert asked == ["beforeunload"]
    page.remove_listener("dialog", stay)
