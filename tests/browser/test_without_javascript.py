"""Does every control work where no script runs?"""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser import operating
from tests.browser.conftest import PASSWORD, OpensPage
from toolbelt import models
from toolbelt.store import snapshots

pytestmark = pytest.mark.browser

STATUS = "git__git_status"


@pytest.fixture
def plain(open_page: OpensPage) -> Page:
    """Give an operator's browser that runs no scripts, at an agent that works with Git."""
    return open_page("/agents/runner/", java_script_enabled=False)


def test_a_switch_is_flipped_and_taken_back(plain: Page) -> None:
    operating.switch(plain, "local_git").click()
    expect(operating.notice(plain)).to_contain_text("local_git is off for runner.")
    assert plain.url.endswith("/agents/runner/#toolkit-local_git")
    expect(operating.switch(plain, "local_git")).to_have_attribute("aria-checked", "false")
    expect(plain.get_by_role("region", name="Your last change")).to_contain_text("−12")
    operating.notice(plain).get_by_role("button", name="Undo").click()
    expect(operating.notice(plain)).to_contain_text("Undone: olive turned off local_git.")
    expect(operating.switch(plain, "local_git")).to_have_attribute("aria-checked", "true")
    operating.section(plain, "local_git").get_by_role("button", name="Follow defaults").click()
    expect(operating.notice(plain)).to_contain_text("local_git follows the defaults for runner.")


def test_an_override_is_chosen_and_saved_and_reset(plain: Page) -> None:
    section = operating.section(plain, "local_git")
    section.locator("summary").click()
    section.get_by_role("link", name="Show 12 tools").click()
    row = operating.row(plain, "local_git", STATUS)
    save = row.get_by_role("button", name="Save")
    expect(save).to_be_hidden()
    operating.choice(plain, "local_git", STATUS, "Off").check(force=True)
    save.click()
    expect(operating.notice(plain)).to_contain_text(f"{STATUS} is off for runner.")
    expect(row).to_contain_text("its override is off")
    operating.section(plain, "local_git").get_by_role("button", name="Reset the overrides").click()
    expect(operating.notice(plain)).to_contain_text("1 override of runner reset.")
    operating.notice(plain).get_by_role("button", name="Undo").click()
    assert snapshots.find("runner", None).agent.overrides[STATUS] is False


def test_a_question_is_a_page_of_its_own(plain: Page) -> None:
    operating.switch(plain, "issues").click()
    expect(plain.get_by_role("heading", level=1)).to_have_text("Turn on issues for runner?")
    plain.get_by_role("link", name="Leave as it is").click()
    expect(operating.switch(plain, "issues")).to_have_attribute("aria-checked", "false")
    operating.switch(plain, "issues").click()
    plain.get_by_label("Reason").fill("For the audit.")
    plain.get_by_role("button", name="Turn on").click()
    expect(operating.switch(plain, "issues")).to_have_attribute("aria-checked", "true")
    assert models.AuditEntry.objects.get().reason == "For the audit."


def test_filters_and_a_message_are_forms(plain: Page) -> None:
    plain.get_by_role("searchbox").fill("git_status")
    plain.get_by_role("radio", name="Active").check(force=True)
    plain.get_by_role("button", name="Apply").click()
    expect(plain.locator("li.tool")).to_have_count(1)
    assert "q=git_status&show=active" in plain.url
    plain.get_by_role("link", name="Show all").click()
    plain.get_by_role("radio", name="Directive").check(force=True)
    plain.get_by_label("Try a message").fill("commit this")
    plain.get_by_role("button", name="Try").click()
    expect(plain.locator("#model-directive")).to_contain_text("must call one")
    plain.goto("/agents/")
    plain.get_by_label("Kind").select_option("plan")
    plain.get_by_role("button", name="Apply").click()
    expect(plain.locator("tbody tr")).to_have_count(1)


def test_the_log_undoes(plain: Page) -> None:
    operating.switch(plain, "local_git").click()
    plain.goto("/changes/")
    plain.get_by_role("button", name="Undo").click()
    expect(operating.notice(plain)).to_contain_text("Undone: olive turned off local_git.")
    expect(plain.locator(".entry")).to_have_count(2)


@pytest.mark.parametrize("scripts", [True, False])
def test_one_comes_in_and_goes_out(open_page: OpensPage, scripts: bool) -> None:
    page = open_page("/agents/runner/", who=None, width=1440, java_script_enabled=scripts)
    expect(page).to_have_title("Log in · Toolbelt")
    page.get_by_label("User name").fill("olive")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_label("User name")).to_have_value("olive")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="runner")).to_be_visible()
    page.get_by_role("button", name="Log out").click()
    expect(page).to_have_title("Log in · Toolbelt")
    page.go_back()
    expect(page).to_have_title("Log in · Toolbelt")


def test_on_a_phone_the_menu_opens(open_page: OpensPage) -> None:
    page = open_page("/agents/", width=390, java_script_enabled=False)
    page.locator("summary").filter(has_text="Menu").click()
    page.get_by_role("link", name="Changes").click()
    expect(page.get_by_role("heading", name="Changes")).to_be_visible()
