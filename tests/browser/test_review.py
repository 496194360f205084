"""Tests of reviewing tools and of operating a plugin: keys, focus, confirmations and progress."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser import dashboard
from tests.browser.conftest import OpensPage
from tests.web import servers
from toolbelt.runtime.upstream import server_lists

pytestmark = pytest.mark.browser


@pytest.fixture
def vault(demo: str) -> None:
    """Add a server with tools to review: vault__help is flagged, vault__write changed, vault__ls is new."""
    servers.changed("vault")


@pytest.mark.usefixtures("vault")
def test_tools_are_reviewed_with_keys_and_flagged_ones_need_a_confirmation(open_page: OpensPage) -> None:
    page = open_page("/review/?plugin=vault")
    page.get_by_role("button", name="Approve vault__help").click()
    expect(page.get_by_text("vault__help: overrules instructions")).to_be_visible()
    dashboard.cancel(page)

    # Until htmx listens to a new form, a key would submit it without htmx: make that time long.
    page.evaluate("htmx.config.defaultSettleDelay = 300")
    write = page.locator("[id='tool-vault__write']")
    expect(write.locator("ins").first).not_to_be_visible()
    # From the focused button of vault__help to the next row.
    page.keyboard.press("j")
    expect(write.locator("[data-key=e]")).to_be_focused()
    page.keyboard.press("x")
    expect(page.get_by_role("checkbox", name="Select vault__write")).to_be_checked()
    page.keyboard.press("e")
    expect(write.locator("details")).to_have_attribute("open", "")
    expect(write.locator("ins").first).to_contain_text("Write a file, or a link.")
    page.keyboard.press("a")
    expect(dashboard.notice(page)).to_contain_text("vault__write approved.")
    expect(page.locator("[id='tool-vault__ls'] [data-key=e]")).to_be_focused()
    page.keyboard.press("r")
    expect(dashboard.notice(page)).to_contain_text("vault__ls rejected")
    expect(page.locator("[id='tool-vault__help'] [data-key=e]")).to_be_focused()
    page.keyboard.press("k")
    expect(page.get_by_role("heading", name="1 tool to review")).to_be_visible()

    page.get_by_role("checkbox", name="Select vault__help").check()
    page.get_by_role("button", name="Reject selected").click()
    expect(dashboard.notice(page)).to_contain_text("vault__help rejected")
    expect(page.get_by_text("No tools to review")).to_be_visible()


@pytest.mark.usefixtures("vault")
def test_a_plugin_is_switched_blocked_and_refreshed_in_place(
    open_page: OpensPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_lists, "refresh_soon", lambda names, record: None)
    page = open_page("/plugins/?q=vault")
    switch = page.get_by_role("switch", name="Plugin: vault")
    switch.press("Space")
    expect(dashboard.notice(page)).to_contain_text("vault is off for everyone.")
    expect(switch).to_have_attribute("aria-checked", "false")
    expect(switch).to_be_focused()
    expect(page.locator("#plugin-vault")).to_contain_text("Off")
    page.get_by_role("button", name="Block for everyone vault").click()
    expect(page.get_by_role("button", name="Unblock vault")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Block for everyone vault")).to_be_focused()
    switch.press("Space")
    expect(dashboard.notice(page)).to_contain_text("vault is on.")

    page.goto("/plugins/vault/")
    page.get_by_role("button", name="Refresh").click()
    expect(page.locator("#refresh-progress")).to_contain_text("Refreshing vault…")
    servers.answer(servers.READ, servers.WRITE_NOW, name="vault")
    expect(page.locator("#refresh-progress")).to_contain_text("1 server responded. 1 tool awaits review.")
    expect(page.get_by_role("link", name="1 to review", exact=True)).to_be_visible()
