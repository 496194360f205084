"""Tests that an operator can review what changed at a server."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser import looks, operating
from tests.browser.conftest import OpensPage
from tests.plugins.upstream import listing
from tests.web import servers
from toolbelt.runtime import upstream_listing

pytestmark = pytest.mark.browser


@pytest.fixture
def review(open_page: OpensPage) -> OpensPage:
    """Return a way to open the review of a server that changed."""
    servers.changed("vault")
    return open_page


def heading(page: Page, text: str) -> Locator:
    return page.get_by_role("heading", name=text)


@looks.with_scripts
def test_orders_to_models_are_asked_about_and_rejected(review: OpensPage) -> None:
    page = review("/review/?plugin=vault")
    page.get_by_role("button", name="Approve vault__help").click()
    expect(page.get_by_text("vault__help: overrules instructions")).to_be_visible()
    operating.leave(page)
    page.get_by_role("checkbox", name="Select vault__help").check()
    page.get_by_role("button", name="Reject selected").click()
    expect(operating.notice(page)).to_contain_text("vault__help rejected")
    page.get_by_role("button", name="Approve 2 unflagged").click()
    expect(operating.notice(page)).to_contain_text("2 tools approved.")
    expect(page.get_by_text("No tools to review")).to_be_visible()


@looks.with_scripts
def test_a_row_opens_to_what_differs(review: OpensPage) -> None:
    page = review("/review/?plugin=vault")
    row = page.locator("[id='tool-vault__write']")
    expect(row.locator("ins").first).not_to_be_visible()
    row.locator("summary").click()
    expect(row.locator("ins").first).to_contain_text("Write a file, or a link.")


def test_keys_move_select_open_approve_and_reject_and_the_focus_goes_on(review: OpensPage) -> None:
    page = review("/review/?plugin=vault")
    # What a response brings is not yet listened to for that long; a key pressed meanwhile would send the form as HTML.
    page.evaluate("htmx.config.defaultSettleDelay = 300")
    for _ in range(2):
        page.keyboard.press("j")
    expect(page.locator("[id='tool-vault__write'] [data-key=e]")).to_be_focused()
    page.keyboard.press("x")
    expect(page.get_by_role("checkbox", name="Select vault__write")).to_be_checked()
    page.keyboard.press("e")
    expect(page.locator("[id='tool-vault__write'] details")).to_have_attribute("open", "")
    page.keyboard.press("a")
    expect(operating.notice(page)).to_contain_text("vault__write approved.")
    expect(page.locator("[id='tool-vault__ls'] [data-key=e]")).to_be_focused()
    page.keyboard.press("r")
    expect(operating.notice(page)).to_contain_text("vault__ls rejected")
    expect(page.locator("[id='tool-vault__help'] [data-key=e]")).to_be_focused()
    page.keyboard.press("k")
    expect(heading(page, "1 tool to review")).to_be_visible()


def test_twenty_six_new_tools_fit_two_screens(open_page: OpensPage) -> None:
    servers.add("vault")
    servers.answer(
        *[listing.tool(f"tool_{number:02}", f"Does {number}.") for number in range(26)], name="vault"
    )
    page = open_page("/review/?plugin=vault")
    expect(page.locator("[data-row]")).to_have_count(26)
    bottom = page.locator("[data-row]").last.evaluate("(row) => row.getBoundingClientRect().bottom + scrollY")
    assert bottom < 2 * 900


@looks.with_scripts
def test_a_switch_keeps_the_focus_and_follows_what_is_stored(review: OpensPage) -> None:
    page = review("/plugins/?q=vault")
    switch = page.get_by_role("switch", name="Plugin: vault")
    switch.press("Space")
    expect(operating.notice(page)).to_contain_text("vault is off for everyone.")
    expect(switch).to_have_attribute("aria-checked", "false")
    expect(switch).to_be_focused()
    expect(page.locator("#plugin-vault")).to_contain_text("Off")
    page.get_by_role("button", name="Block for everyone vault").click()
    expect(page.get_by_role("button", name="Unblock vault")).to_be_focused()
    switch.press("Space")
    expect(operating.notice(page)).to_contain_text("vault is on.")


def test_a_refresh_is_shown_until_it_is_over(review: OpensPage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream_listing, "refresh_soon", lambda names, record: None)
    page = review("/plugins/vault/")
    page.get_by_role("button", name="Refresh").click()
    expect(page.locator("#refresh-progress")).to_contain_text("Refreshing vault…")
    servers.answer(servers.READ, servers.WRITE_NOW, name="vault")
    expect(page.locator("#refresh-progress")).to_contain_text("1 server responded. 1 tool awaits review.")
    expect(page.get_by_role("link", name="1 to review", exact=True)).to_be_visible()
