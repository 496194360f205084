"""Tests of the dialog that searches and jumps, and of the changes that it offers."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser import dashboard
from tests.browser.conftest import OpensPage
from toolbelt.control import writing
from toolbelt.control.access import switches
from toolbelt.store import snapshots

pytestmark = pytest.mark.browser


def open_dialog(page: Page) -> None:
    page.keyboard.press("Control+k")
    expect(page.get_by_role("dialog", name="Search or jump")).to_be_visible()
    expect(page.get_by_role("combobox", name="Search or say what to do")).to_be_focused()


def test_search_or_jump_works_from_the_keyboard_and_confirms_a_typed_change(open_page: OpensPage) -> None:
    switches.flip(writing.by("otto", via="api").replace(confirm=True), "assistant", "tickets", True)
    page = open_page("/tools/")
    page.get_by_role("searchbox").focus()
    open_dialog(page)
    field = page.get_by_role("combobox", name="Search or say what to do")
    options = page.get_by_role("listbox", name="Results").get_by_role("option")
    expect(page.get_by_role("option", name="Overview")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowDown")
    expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    expect(field).to_have_attribute("aria-activedescendant", "jump-1")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    expect(options.last).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(page.get_by_role("searchbox")).to_be_focused()

    open_dialog(page)
    page.keyboard.type("kiosk")
    expect(options.first).to_contain_text("kiosk")
    expect(options.first).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/agents/kiosk/"))

    page.get_by_role("link", name="Search or jump").click()
    field.fill("turn off tickets for assistant")
    page.get_by_role("option", name="Turn off Tickets for Assistant").click()
    expect(
        page.get_by_role("heading", name="Turn off Tickets tickets for Assistant assistant?")
    ).to_be_visible()
    assert snapshots.find("assistant", None).agent.switches["tickets"] is True
    page.get_by_role("button", name="Turn off").click()
    expect(dashboard.notice(page)).to_contain_text("tickets is off for Assistant assistant.")
    assert snapshots.find("assistant", None).agent.switches["tickets"] is False
