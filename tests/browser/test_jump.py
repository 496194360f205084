"""Search and jump with the keyboard: opened from anywhere, chosen with the arrows, and followed with Enter."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser import looks
from tests.browser.conftest import OpensPage
from toolbelt.control import writing
from toolbelt.control.access import switches
from toolbelt.store import snapshots

pytestmark = pytest.mark.browser


def opened(page: Page) -> None:
    page.keyboard.press("Control+k")
    expect(page.get_by_role("dialog", name="Search or jump")).to_be_visible()
    expect(page.get_by_role("combobox", name="Search or say what to do")).to_be_focused()


def test_a_page_is_reached_with_the_keyboard_alone(open_page: OpensPage) -> None:
    page = open_page("/agents/runner/")
    opened(page)
    field = page.get_by_role("combobox", name="Search or say what to do")
    expect(page.get_by_role("option", name="Overview")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowDown")
    second = page.get_by_role("option").nth(1)
    expect(second).to_have_attribute("aria-selected", "true")
    expect(field).to_have_attribute("aria-activedescendant", "jump-1")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("option").last).to_have_attribute("aria-selected", "true")
    page.keyboard.type("kiosk")
    expect(page.get_by_role("option").first).to_contain_text("kiosk")
    expect(page.get_by_role("option").first).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/agents/kiosk/"))


def test_it_closes_where_it_was_opened(open_page: OpensPage) -> None:
    page = open_page("/tools/")
    page.get_by_role("searchbox").focus()
    opened(page)
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(page.get_by_role("searchbox")).to_be_focused()


@looks.with_scripts
def test_what_is_said_is_asked_about_before_it_is_done(open_page: OpensPage, look: looks.Look) -> None:
    switches.flip(writing.by("otto", via="api").replace(confirm=True), "assistant", "tickets", True)
    page = open_page("/")
    page.get_by_role("link", name="Search or jump").click()
    if look.scripts:
        page.get_by_role("combobox", name="Search or say what to do").fill("turn off tickets for assistant")
        page.get_by_role("option", name="Turn off tickets for assistant").click()
    else:
        page.get_by_role("searchbox").fill("turn off tickets for assistant")
        page.get_by_role("button", name="Search").click()
        page.get_by_role("link", name="Turn off tickets for assistant").click()
    expect(page.get_by_role("heading", name="Turn off tickets for assistant?")).to_be_visible()
    assert snapshots.find("assistant", None).agent.switches["tickets"] is True
    page.get_by_role("button", name="Turn off").click()
    expect(page.get_by_role("region", name="Notices")).to_contain_text("tickets is off for assistant.")
    assert snapshots.find("assistant", None).agent.switches["tickets"] is False
