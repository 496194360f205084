"""Are a loadout and a toolkit edited on the screen, with what that changes shown first, with scripts and without?"""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser import looks, operating
from tests.browser.conftest import OpensPage
from toolbelt.control import actors, entries
from toolbelt.store import snapshots

pytestmark = pytest.mark.browser

OTTO = actors.Actor(name="otto", via="api")


def proposed(page: Page) -> Locator:
    """Find what a save would do to whom: over the form, or on a page of its own."""
    place = page.get_by_role("dialog" if operating.runs_scripts(page) else "main")
    expect(place.get_by_role("heading", name="What it changes for whom")).to_be_visible()
    assert looks.complaints(page) == []
    return place


@looks.with_scripts
def test_a_loadout_is_saved_after_it_was_shown_for_whom(open_page: OpensPage) -> None:
    page = open_page("/loadouts/")
    page.get_by_role("link", name=re.compile("^developer, extends minimal: ")).press("Enter")
    expect(page).to_have_url("/loadouts/developer/")
    page.locator(".picture-box", has_text="secure-review").locator("rect").click()
    page.get_by_role("link", name="Edit").click()
    page.get_by_label("memory", exact=True).check(force=True)
    page.get_by_label("Disabled").fill("git\n")
    page.get_by_role("button", name="Save", exact=True).click()
    question = page.get_by_role("dialog", name="Save the loadout secure-review?")
    expect(question).to_contain_text("It changes what 1 of 12 agents gets")
    expect(question.locator(".reached")).to_contain_text("reviewer")
    expect(page).to_have_url("/loadouts/secure-review/edit/")
    assert entries.read("loadout", "secure-review")["disabled"] != ["git"]

    question.get_by_role("button", name="Back to the form").click()
    expect(question).to_have_count(0)
    expect(page.get_by_label("Disabled")).to_have_value("git\n")
    expect(page.get_by_role("button", name="Save", exact=True)).to_be_focused()
    page.get_by_role("button", name="Save", exact=True).click()
    question.get_by_label("Reason").fill("Git is elsewhere.")
    question.get_by_role("button", name="Save", exact=True).click()
    expect(operating.notice(page)).to_contain_text("The loadout secure-review is saved.")
    assert entries.read("loadout", "secure-review")["disabled"] == ["git"]
    operating.notice(page).get_by_role("button", name="Undo").click()
    expect(operating.notice(page)).not_to_contain_text("is saved")
    assert "desktop_commander" in entries.read("loadout", "secure-review")["disabled"]


@looks.with_scripts
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
    page.get_by_role("button", name="Save", exact=True).last.click()
    question = page.get_by_role("dialog", name="Save the toolkit local_git?")
    expect(question.get_by_role("heading", name="What it changes for whom")).to_be_visible()
    question.get_by_role("button", name="Save", exact=True).click()
    expect(operating.notice(page)).to_contain_text("The toolkit local_git is saved.")
    stored = entries.read("toolkit", "local_git")
    assert stored["members"][0] == "git__git_diff_unstaged"
    assert stored["triggers"][2] == {"name": "trigger 3", "any": ["which day"]}


@looks.with_scripts
def test_what_is_wrong_is_shown_in_the_form_over_which_the_question_stood(open_page: OpensPage) -> None:
    page = open_page("/loadouts/secure-review/edit/", expects="status of (409|422)")
    page.get_by_label("Disabled").fill("git")
    page.get_by_label("Other plugins").fill("(none)")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_label("Other plugins")).to_be_focused()
    expect(page.get_by_label("Disabled")).to_have_value("git")

    page.get_by_label("Other plugins").fill("")
    page.get_by_role("button", name="Save", exact=True).click()
    question = page.get_by_role("dialog")
    expect(question).to_be_visible()
    entries.change(OTTO, "loadout", "secure-review", {"disabled": ["fetch"]})
    question.get_by_role("button", name="Save", exact=True).click()
    expect(question).to_have_count(0)
    expect(page.get_by_role("alert")).to_contain_text("was changed by somebody else")
    expect(page.get_by_role("alert")).to_be_in_viewport()


@looks.without_scripts
def test_a_toolkit_is_tried_and_edited_where_no_script_runs(open_page: OpensPage) -> None:
    page = open_page("/toolkits/local_git/edit/")
    page.get_by_label("While one of its tools is active").fill("You have {active_tools}.")
    page.get_by_role("button", name="Try", exact=True).click()
    expect(page.locator("#tried")).to_contain_text("You have git__git_status,")
    page.get_by_role("button", name="Save", exact=True).last.click()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(operating.notice(page)).to_contain_text("The toolkit local_git is saved.")
    assert entries.read("toolkit", "local_git")["policy"] == "You have {active_tools}."


@looks.in_each
def test_a_sub_app_is_edited_row_by_row(open_page: OpensPage) -> None:
    page = open_page("/sub-apps/war-room/edit/")
    page.get_by_role("button", name="Take out: time__get_current_time").click()
    expect(page.locator(".rows")).not_to_contain_text("time__get_current_time")
    page.get_by_label("Add tools").fill("fetch__fetch")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator(".rows")).to_contain_text("fetch__fetch")
    page.get_by_role("button", name="Save", exact=True).last.click()
    proposed(page).get_by_role("button", name="Save", exact=True).click()
    expect(operating.notice(page)).to_contain_text("The sub-app war-room is saved.")
    bound = snapshots.catalog().sub_apps["war-room"].tool_names
    assert bound == ("slack__slack_post_message", "fetch__fetch")


@looks.in_each
@pytest.mark.parametrize(
    ("kind", "field", "name"),
    [
        ("loadout", "Name", "night-shift"),
        ("toolkit", "Key", "night_shift"),
        ("sub-app", "Key", "night-shift"),
    ],
)
def test_one_is_made_and_removed(open_page: OpensPage, kind: str, field: str, name: str) -> None:
    page = open_page(f"/new/{kind}/")
    page.get_by_label(field, exact=True).fill(name)
    page.get_by_label("Description").fill("Who is awake.")
    page.get_by_role("button", name="Make it").click()
    expect(operating.notice(page)).to_contain_text(name)
    page.goto(f"/{kind}s/{name}/")
    expect(page.get_by_text("Who is awake.").first).to_be_visible()
    page.get_by_role("button", name="Remove").click()
    # Nobody has it: there is nothing to ask.
    expect(operating.notice(page)).to_contain_text("removed")
    operating.undo(page)
    page.goto(f"/{kind}s/{name}/")
    expect(page.get_by_text("Who is awake.").first).to_be_visible()
