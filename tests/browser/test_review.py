"""Tests that an operator can review what changed at a server."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser import looks, operating
from tests.browser.conftest import OpensPage
from tests.web import servers
from toolbelt.runtime import upstream_listing

pytestmark = pytest.mark.browser


@pytest.fixture
def review(open_page: OpensPage) -> OpensPage:
    """Return a way to open the review of a server that changed."""
    servers.changed()
    return open_page


def tick(page: Page, tool: str) -> None:
    page.get_by_role("checkbox", name=tool).check()


@looks.with_scripts
def test_orders_to_models_are_asked_about_and_kept_off(review: OpensPage) -> None:
    page = review("/plugins/files/")
    page.get_by_role("button", name="Approve all 3").click()
    expect(page.get_by_text("files__help overrules instructions")).to_be_visible()
    operating.leave(page)
    tick(page, "files__help")
    page.get_by_role("button", name="Reject selected").click()
    expect(operating.notice(page)).to_contain_text("files__help rejected")
    page.get_by_role("button", name="Approve all 2").click()
    expect(operating.notice(page)).to_contain_text("2 tools approved.")
    expect(page.get_by_role("button", name="Approve")).to_have_count(0)


@looks.with_scripts
def test_a_switch_keeps_the_focus_and_follows_what_is_stored(review: OpensPage) -> None:
    page = review("/plugins/?q=files")
    switch = page.get_by_role("switch", name="Plugin: files")
    switch.press("Space")
    expect(operating.notice(page)).to_contain_text("files is off for everyone.")
    expect(switch).to_have_attribute("aria-checked", "false")
    expect(switch).to_be_focused()
    expect(page.locator("#plugin-files")).to_contain_text("Off")
    page.get_by_role("button", name="Block for everyone files").click()
    expect(page.get_by_role("button", name="Unblock files")).to_be_focused()
    switch.press("Space")
    expect(operating.notice(page)).to_contain_text("files is on.")


def test_a_refresh_is_shown_until_it_is_over(review: OpensPage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream_listing, "refresh_soon", lambda names, record: None)
    page = review("/plugins/files/")
    page.get_by_role("button", name="Refresh").click()
    expect(page.locator("#asking")).to_contain_text("Refreshing files…")
    servers.answer(servers.READ, servers.WRITE_NOW)
    expect(page.locator("#asking")).to_contain_text("1 server responded. 1 tool awaits review.")
    expect(page.get_by_role("heading", name="1 to review")).to_be_visible()
