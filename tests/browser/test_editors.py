"""Tests of the editors of loadouts and toolkits: live previews, rows, the tool finder, confirmations, errors."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Dialog, Page, expect

from tests.browser import dashboard, devices
from tests.browser.conftest import OpensPage
from toolbelt.control import writing
from toolbelt.control.catalog import entries

pytestmark = pytest.mark.browser

OTTO = writing.by("otto", via="api")
LOADOUT = "/loadouts/secure-review/"


@devices.on_phone
def test_a_loadout_opens_from_its_picture_and_is_saved_after_a_confirmation(
    open_page: OpensPage,
) -> None:
    page = open_page("/loadouts/")
    # The link of a line covers all of it, except for its other links.
    line = page.get_by_role("listitem").filter(has=page.get_by_role("link", name="secure-review", exact=True))
    line.get_by_text("A developer's view").click(force=True)
    expect(page).to_have_url(re.compile(f"{LOADOUT}$"))
    page.go_back()
    line.get_by_role("link", name="developer").click()
    expect(page).to_have_url(re.compile("/loadouts/developer/$"))
    page.go_back()
    page.get_by_role("heading", name="Loadouts").click()
    expect(page).to_have_url(re.compile("/loadouts/$"))
    page.get_by_role("link", name=re.compile("^developer, extends minimal: ")).press("Enter")
    expect(page).to_have_url("/loadouts/developer/")
    page.locator(".picture-box", has_text="secure-review").locator("rect").click()

    page.get_by_role("link", name="Edit").click()
    page.get_by_role("group", name="Categories").get_by_label("memory", exact=True).check(force=True)
    page.get_by_label("Disabled").fill("git\n")
    page.get_by_role("button", name="Save changes", exact=True).click()
    confirmation = page.get_by_role("dialog", name="Save loadout secure-review?")
    expect(confirmation).to_contain_text("This changes what 1 of 12 agents gets")
    expect(confirmation.locator(".reached")).to_contain_text("reviewer")
    expect(page).to_have_url(f"{LOADOUT}edit/")
    assert entries.read("loadout", "secure-review")["disabled"] != ["git"]

    confirmation.get_by_role("button", name="Back to editing").click()
    expect(confirmation).to_have_count(0)
    expect(page.get_by_label("Disabled")).to_have_value("git\n")
    expect(page.get_by_role("button", name="Save changes", exact=True)).to_be_focused()
    page.get_by_role("button", name="Save changes", exact=True).click()
    confirmation.get_by_label("Reason").fill("Git is elsewhere.")
    confirmation.get_by_role("button", name="Save changes", exact=True).click()
    expect(dashboard.notice(page)).to_contain_text("Loadout secure-review saved.")
    assert entries.read("loadout", "secure-review")["disabled"] == ["git"]
    dashboard.notice(page).get_by_role("button", name="Undo").click()
    expect(dashboard.notice(page)).not_to_contain_text("saved")
    assert "desktop_commander" in entries.read("loadout", "secure-review")["disabled"]


def test_an_editor_warns_of_unsaved_changes_and_shows_errors_in_its_form(open_page: OpensPage) -> None:
    dialogs = []

    def stay(dialog: Dialog) -> None:
        dialogs.append(dialog.type)
        dialog.dismiss()

    page = open_page(f"{LOADOUT}edit/", expected_errors="status of (409|422)")
    page.on("dialog", stay)
    disabled = page.get_by_label("Disabled")
    disabled.press_sequentially("x")
    cancel = page.get_by_role("link", name="Cancel")
    expect(cancel).to_be_in_viewport(ratio=1)
    cancel.click(no_wait_after=True)
    expect(disabled).to_have_value(re.compile("x"))
    disabled.press("Backspace")
    cancel.click()
    expect(page).to_have_url(LOADOUT)
    assert dialogs == ["beforeunload"]
    page.remove_listener("dialog", stay)

    page.goto(f"{LOADOUT}edit/")
    save = page.get_by_role("button", name="Save changes", exact=True)
    disabled.fill("git")
    page.get_by_label("Other plugins").fill("(none)")
    save.click()
    expect(page.get_by_label("Other plugins")).to_be_focused()
    expect(disabled).to_have_value("git")
    page.get_by_label("Other plugins").fill("")
    save.click()
    confirmation = page.get_by_role("dialog")
    expect(confirmation).to_be_visible()
    entries.change(OTTO, "loadout", "secure-review", {"disabled": ["fetch"]})
    confirmation.get_by_role("button", name="Save changes", exact=True).click()
    expect(confirmation).to_have_count(0)
    expect(page.get_by_role("alert")).to_contain_text("was changed by another operator")
    expect(page.get_by_role("alert")).to_be_in_viewport()


def wait_until_settled(page: Page) -> None:
    """Wait until htmx listens to the form that it swapped in: after 20 ms, which is sooner than a person can type."""
    expect(page.locator(".htmx-added, .htmx-settling, .htmx-swapping, .htmx-request")).to_have_count(0)


@devices.on_phone
def test_a_toolkit_editor_previews_what_is_typed_and_validates_patterns(
    open_page: OpensPage,
) -> None:
    page = open_page("/toolkits/local_git/edit/")
    page.get_by_label("While at least one of its tools is on").fill("You have {active_tools}.")
    expect(page.locator("#preview-result")).to_contain_text(
        "You have git__git_status, git__git_diff_unstaged"
    )
    page.get_by_role("button", name="Move down: git__git_status").click()
    expect(page.locator(".rows").first.locator("code").first).to_have_text("git__git_diff_unstaged")
    wait_until_settled(page)
    page.get_by_role("button", name="Add trigger").click()
    expect(page.locator("#editor")).to_contain_text("trigger 3")
    wait_until_settled(page)
    patterns = page.get_by_label("Any of of trigger 3")
    patterns.fill("(oops")
    expect(page.get_by_text("'(oops' is not a pattern that runs in linear time (RE2)")).to_be_visible()
    patterns.fill("which day")
    page.get_by_label("Try a message").fill("which day is it")
    expect(page.get_by_text("matches first").first).to_be_visible()
    expect(page.get_by_text("'(oops' is not")).to_have_count(0)
    page.get_by_role("button", name="Save changes", exact=True).last.click()
    confirmation = page.get_by_role("dialog", name="Save toolkit Local Git local_git?")
    expect(confirmation.get_by_role("heading", name="Effect on agents")).to_be_visible()
    confirmation.get_by_role("button", name="Save changes", exact=True).click()
    expect(dashboard.notice(page)).to_contain_text("Toolkit Local Git local_git saved.")
    stored = entries.read("toolkit", "local_git")
    assert stored["members"][0] == "git__git_diff_unstaged"
    assert stored["triggers"][2] == {"name": "trigger 3", "any": ["which day"]}


def test_the_tool_finder_adds_tools_by_words_or_keys_from_the_keyboard(open_page: OpensPage) -> None:
    page = open_page("/toolkits/local_git/edit/")
    # Enter adds the option that the arrow keys chose, and saves nothing.
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
    members = page.locator(".rows").first.locator("code")
    expect(members.last).to_have_text(str(key))
    expect(finder).to_be_focused()
    expect(finder).to_have_value("")
    finder.press("Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name=f"Remove: {key}").click()
    expect(page.locator(".rows").first).not_to_contain_text(str(key))

    # Of several keys, those that exist are added, and the others are named.
    wait_until_settled(page)
    finder.fill("time__get_current_time, time__convert_time time__no_such")
    expect(options.first).to_contain_text("Add 2 tools")
    finder.press("Enter")
    expect(members.nth(-2)).to_have_text("time__get_current_time")
    expect(members.last).to_have_text("time__convert_time")
    expect(page.get_by_text("No tool is called time__no_such. The others were added.")).to_be_visible()
    # Enter does not wait for the options.
    wait_until_settled(page)
    finder.fill("fetch__fetch arxiv")
    finder.press("Enter")
    expect(members.last).to_have_text("arxiv")
    expect(finder).to_have_value("")
    wait_until_settled(page)
    page.get_by_role("button", name="Remove: time__get_current_time").click()
    expect(members.get_by_text("time__get_current_time", exact=True)).to_have_count(0)
    wait_until_settled(page)
    finder.fill("current time")
    page.get_by_role("option", name="Add all").click()
    expect(members.get_by_text("time__get_current_time")).to_be_visible()
