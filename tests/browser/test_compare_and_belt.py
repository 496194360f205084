"""Do copying from one agent to another, and taking in a belt, work as one uses them: tick, look, do, undo?"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from playwright.sync_api import expect

from tests.browser import looks, operating
from tests.browser.conftest import OpensPage
from toolbelt.control import entries

pytestmark = pytest.mark.browser

BELT = """
toolkits:
  - key: shipping
    title: Shipping
    members: [git__git_status]
agents:
  - key: newcomer
    tools_config: {shipping: true}
"""


@looks.in_each
def test_rows_are_ticked_copied_and_undone(open_page: OpensPage) -> None:
    before = entries.read("agent", "runner")
    page = open_page("/agents/runner/?q=git_")
    page.get_by_role("link", name="Compare runner with another").click()
    page.get_by_label("Agent or loadout").first.select_option("kiosk")
    page.get_by_role("button", name="Compare").click()
    ticks = page.get_by_role("checkbox")
    ticks.nth(0).check()
    ticks.nth(1).check()
    page.get_by_role("button", name="Copy ticked to runner").click()
    dialog = operating.question(page)
    expect(dialog).to_contain_text("Copy 2 differences to runner?")
    expect(dialog.get_by_role("table")).to_be_visible()
    assert entries.read("agent", "runner") == before
    dialog.get_by_role("button", name="Copy").click()
    expect(operating.notice(page)).to_contain_text("runner got 2 rows of kiosk.")
    assert entries.read("agent", "runner") != before
    operating.notice(page).get_by_role("button", name="Undo").click()
    expect(operating.notice(page)).to_contain_text("Undone")
    assert entries.read("agent", "runner") == before


@looks.in_each
def test_a_belt_is_checked_looked_at_imported_and_undone(open_page: OpensPage) -> None:
    page = open_page("/belt/", expects="status of (404|422)")
    page.get_by_label("Or its text").fill("agents: [{key: newcomer, tools_config: {nope: true}}]")
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("alert")).to_contain_text("agents.newcomer.tools_config.nope")
    page.get_by_label("A file").set_input_files(
        {"name": "belt.yaml", "mimeType": "application/yaml", "buffer": BELT.encode()}
    )
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("heading", name="What the import would do")).to_be_visible()
    expect(page.get_by_text("2 added, 0 changed")).to_be_visible()
    page.get_by_label("Reason").fill("A hand more.")
    page.get_by_role("button", name="Import as shown").click()
    expect(operating.notice(page)).to_contain_text("Imported: 2 added")
    assert entries.read("agent", "newcomer")["tools_config"] == {"shipping": True}
    operating.notice(page).get_by_role("button", name="Undo").click()
    expect(operating.notice(page)).to_contain_text("Undone")
    page.goto("/agents/newcomer/")
    expect(page.get_by_text("404")).to_be_visible()


@looks.in_each
def test_a_belt_is_taken_away_in_parts_and_comes_in_again(open_page: OpensPage) -> None:
    page = open_page("/belt/")
    sections = page.get_by_role("group", name="Sections").get_by_role("checkbox")
    for section in sections.all():
        section.set_checked(section.get_attribute("value") == "loadouts")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download YAML").click()
    taken = Path(download.value.path()).read_text()
    assert list(yaml.safe_load(taken)) == ["loadouts"]
    page.get_by_label("Or its text").fill(taken)
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("heading", name="Everything is so already")).to_be_visible()
