"""Journeys over several pages with a mouse or a finger: filter, preview, change, undo."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser import looks, operating
from tests.browser.conftest import OpensPage
from toolbelt.control import writing
from toolbelt.control.access import switches
from toolbelt.control.catalog import entries
from toolbelt.store import snapshots

pytestmark = pytest.mark.browser

OTTO = writing.by("otto", via="api")
BELT = """
toolkits:
  - key: shipping
    title: Shipping
    members: [git__git_status]
agents:
  - key: newcomer
    tools_config: {shipping: true}
"""


@looks.with_scripts
def test_a_toolkit_is_off_for_two_hours(open_page: OpensPage) -> None:
    page = open_page("/agents/runner/?q=git_")
    operating.more(page, "local_git").get_by_role("button", name="2 hours").last.click()
    expect(operating.notice(page)).to_contain_text("local_git is off for runner until ")
    expect(operating.section(page, "local_git")).to_contain_text("left")
    assert "local_git" in snapshots.find("runner", None).agent.ends
    operating.undo(page)
    expect(operating.section(page, "local_git")).not_to_contain_text("left")


@looks.with_scripts
def test_all_that_the_access_page_shows_is_turned_off_and_back_on(open_page: OpensPage) -> None:
    page = open_page("/agents/runner/?q=git_st")
    page.get_by_text("Bulk actions").click()
    page.locator(".bulk-menu button[value=tools-false]").click()
    expect(operating.question(page)).to_contain_text("Turn off ")
    assert looks.complaints(page) == []
    operating.question(page).get_by_role("button", name="Turn off: ").click()
    expect(operating.notice(page)).to_contain_text("for runner: off.")
    assert snapshots.find("runner", None).agent.overrides["git__git_status"] is False
    operating.undo(page)
    assert "git__git_status" not in snapshots.find("runner", None).agent.overrides


@looks.with_scripts
def test_a_cell_of_the_matrix_is_flipped_and_reset(open_page: OpensPage, look: looks.Look) -> None:
    page = open_page("/matrix/")
    page.get_by_role("searchbox").fill("git")
    expect(page.locator("#matches")).to_contain_text("1 toolkit,")
    if look.is_phone:
        page.get_by_role("link", name="runner").click()
        expect(page.get_by_label("Agent")).to_have_value("runner")
    switch = page.get_by_role("switch", name="Local git for runner")
    state = page.locator("td").filter(has=switch)
    switch.click()
    expect(operating.notice(page)).to_contain_text("local_git is off for runner.")
    expect(switch).to_have_attribute("aria-checked", "false")
    expect(state).to_contain_text("toolkit local_git is off")
    state.locator("[data-other]").click()
    expect(operating.notice(page)).to_contain_text("local_git is reset to default for runner.")
    expect(switch).to_have_attribute("data-stored", "unset")
    assert "local_git" not in snapshots.find("runner", None).agent.switches


@looks.with_scripts
def test_tools_are_narrowed_by_several_filters_and_the_address_says_how(open_page: OpensPage) -> None:
    page = open_page("/tools/")
    page.get_by_label("Plugin").select_option("git")
    expect(page.locator("#matches")).to_contain_text("12")
    page.get_by_label("Risk").select_option("read-only")
    expect(page).to_have_url(re.compile("plugin=git.*risk=read-only|risk=read-only.*plugin=git"))
    expect(page.get_by_role("link", name="git_commit")).to_have_count(0)
    page.get_by_role("searchbox").fill("git_status")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.reload()
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_role("link", name="git_status").click()
    expect(page.get_by_role("heading", name="Agents")).to_be_visible()


@looks.with_scripts
def test_loadouts_lead_where_one_clicks(open_page: OpensPage) -> None:
    page = open_page("/loadouts/")
    line = page.get_by_role("listitem").filter(has=page.get_by_role("link", name="secure-review", exact=True))
    line.get_by_text("A developer's view").click(force=True)  # its name lies over all of it
    expect(page).to_have_url(re.compile("/loadouts/secure-review/$"))
    page.go_back()
    line.get_by_role("link", name="developer").click()
    expect(page).to_have_url(re.compile("/loadouts/developer/$"))
    page.go_back()
    page.get_by_role("heading", name="Loadouts").click()
    expect(page).to_have_url(re.compile("/loadouts/$"))


@looks.with_scripts
def test_what_an_agent_was_stands_beside_what_it_is_and_is_brought_back(open_page: OpensPage) -> None:
    switches.flip(OTTO, "assistant", "tickets", False)
    page = open_page("/agents/assistant/history/")
    page.get_by_role("link", name="View this version").first.click()
    expect(page.get_by_role("heading", name="Then")).to_be_visible()
    expect(page.get_by_role("heading", name="Now")).to_be_visible()
    # Another operator turns it back on; what it was then can still be copied back.
    switches.flip(OTTO.replace(confirm=True), "assistant", "tickets", None)
    page.get_by_role("link", name="Compare with now and copy settings back").click()
    page.get_by_role("checkbox", name="tickets").check()
    page.get_by_role("button", name="Copy selected to assistant").click()
    operating.question(page).get_by_role("button", name="Copy").click()
    expect(operating.notice(page)).to_contain_text("1 difference copied from assistant")
    assert snapshots.find("assistant", None).agent.switches["tickets"] is False


@looks.with_scripts
def test_a_belt_is_checked_looked_at_imported_and_undone(open_page: OpensPage) -> None:
    page = open_page("/belt/", expects="status of (404|422)")
    page.get_by_label("Or paste its text").fill("agents: [{key: newcomer, tools_config: {nope: true}}]")
    page.get_by_role("button", name="Preview import").click()
    expect(page.get_by_role("alert")).to_contain_text("agents.newcomer.tools_config.nope")
    page.get_by_label("File").set_input_files(
        {"name": "belt.yaml", "mimeType": "application/yaml", "buffer": BELT.encode()}
    )
    page.get_by_role("button", name="Preview import").click()
    expect(page.get_by_role("heading", name="Preview of the import")).to_be_visible()
    expect(page.get_by_text("2 added, 0 changed")).to_be_visible()
    page.get_by_label("Reason").fill("A hand more.")
    page.get_by_role("button", name="Import belt").click()
    expect(operating.notice(page)).to_contain_text("Belt imported: 2 added")
    assert entries.read("agent", "newcomer")["tools_config"] == {"shipping": True}
    operating.undo(page)
    page.goto("/agents/newcomer/")
    expect(page.get_by_text("404")).to_be_visible()


def test_times_are_in_the_zone_of_the_browser_from_the_second_page_on(open_page: OpensPage) -> None:
    page = open_page("/audit/", timezone_id="Asia/Tokyo")
    page.goto("/account/")
    expect(page.get_by_role("combobox", name="Time zone")).to_contain_text("Browser: Asia/Tokyo")
