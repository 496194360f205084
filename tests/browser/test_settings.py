"""Are an agent's settings saved, is it duplicated, put away and brought back, and is it said how to connect?"""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from playwright.sync_api import expect

from tests.browser import looks, operating
from tests.browser.conftest import OpensPage
from toolbelt.control import entries
from toolbelt.store import snapshots

pytestmark = pytest.mark.browser

SETTINGS = "/agents/runner/settings/"


@looks.in_each
def test_settings_are_saved_and_taken_back(open_page: OpensPage) -> None:
    page = open_page(SETTINGS)
    page.get_by_label("Title").fill("Runs things")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(operating.notice(page)).to_contain_text("Settings of runner saved.")
    assert entries.read("agent", "runner")["title"] == "Runs things"
    operating.undo(page)
    assert entries.read("agent", "runner").get("title") != "Runs things"


@looks.in_each
def test_what_cannot_be_saved_is_said_at_its_field_and_stays_typed(open_page: OpensPage) -> None:
    page = open_page(SETTINGS, expects="status of 422")
    page.get_by_label("Most tools").evaluate("(field) => { field.min = ''; field.value = '-1' }")
    page.get_by_label("Role").fill("Runs things")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("Not saved.")
    expect(page.get_by_label("Role")).to_have_value("Runs things")
    expect(page.get_by_label("Most tools")).to_have_attribute("aria-invalid", "true")


@looks.in_each
def test_another_is_made_like_it(open_page: OpensPage) -> None:
    page = open_page(SETTINGS)
    page.get_by_label("Its key").fill("runner-two")
    page.get_by_role("button", name="Duplicate").click()
    expect(operating.notice(page)).to_contain_text("runner-two is configured as runner is.")
    expect(page.get_by_role("heading", name="runner-two", exact=True)).to_be_visible()
    switched = snapshots.find("runner", None).agent.switches
    assert snapshots.find("runner-two", None).agent.switches == switched


@looks.in_each
def test_it_is_put_away_and_brought_back(open_page: OpensPage) -> None:
    page = open_page(SETTINGS)
    page.get_by_role("button", name="Archive …").click()
    page.get_by_role("button", name="Archive", exact=True).click()
    expect(operating.notice(page)).to_contain_text("runner is archived.")
    page.goto("/agents/?archived=1")
    page.get_by_role("link", name="runner", exact=True).click()
    expect(page.get_by_text("It answers nobody").first).to_be_visible()
    page.get_by_role("link", name="Bring it back").click()
    page.get_by_role("button", name="Bring it back").click()
    expect(operating.notice(page)).to_contain_text("runner is back.")
    assert not snapshots.find("runner", None).agent.archived


@looks.in_each
def test_operators_of_it_alone_are_named(open_page: OpensPage) -> None:
    get_user_model().objects.filter(username="olive").update(is_superuser=True)
    page = open_page(SETTINGS)
    page.get_by_role("checkbox", name="rosa").check(force=True)
    page.get_by_role("button", name="Save who operates it").click()
    expect(operating.notice(page)).to_contain_text("runner has for operators of its own: rosa.")
    rosa = open_page("/agents/runner/?q=git_", who="rosa")
    operating.switch(rosa, "local_git").click()
    expect(operating.notice(rosa)).to_contain_text("local_git is off for runner.")


@looks.with_scripts
def test_what_connects_a_client_is_chosen_and_copied(open_page: OpensPage) -> None:
    page = open_page(SETTINGS, permissions=["clipboard-read", "clipboard-write"])
    clients = page.get_by_role("group", name="Which client").get_by_role("radio")
    clients.last.check(force=True)
    shown = page.locator(f"#{clients.last.get_attribute('value')}")
    expect(shown).to_be_visible()
    page.locator(".snippet").filter(has=shown).get_by_role("button", name="Copy").click()
    expect(page.locator(".snippet").filter(has=shown).get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == shown.text_content()
