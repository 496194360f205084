"""Tests of reviewing tools and of operating a plugin: keys, focus, confirmations and progress."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser import dashboard
from tests.browser.conftest import OpensPage
from tests.web import asking, servers
from toolbelt.control import writing
from toolbelt.control.agents import call_approvals
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


@pytest.mark.usefixtures("demo")
def test_calls_are_approved_and_rejected_with_keys(open_page: OpensPage) -> None:
    asked = [asking.ask({"amount": amount}, agent="support-desk", tool="think") for amount in (600, 700, 800)]
    asked += [asking.ask({"amount": 900}, agent="support-desk", tool="think", rule="other")]
    first, second, third, other = (approval.key for approval in asked)
    page = open_page("/review/approvals/")
    rows = {key: page.locator(f"#call-{key}") for key in (first, second, third, other)}
    # Until htmx listens to a new form, a key would submit it without htmx: make that time long.
    page.evaluate("htmx.config.defaultSettleDelay = 300")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(rows[second].get_by_role("link").first).to_be_focused()
    page.keyboard.press("n")
    page.keyboard.type("Not without a ticket, r.")
    # Enter rejects the call whose reason was typed, and approves none.
    page.keyboard.press("Enter")
    expect(dashboard.notice(page)).to_contain_text("The model reads: Not without a ticket, r.")
    expect(rows[second]).to_have_count(0)
    expect(rows[third].get_by_role("link").first).to_be_focused()
    page.keyboard.press("k")
    page.keyboard.press("a")
    expect(dashboard.notice(page)).to_contain_text(
        "The call of think by Support desk support-desk is approved."
    )
    expect(rows[third].get_by_role("link").first).to_be_focused()
    # Across the cards of different rules.
    page.keyboard.press("j")
    expect(rows[other].get_by_role("link").first).to_be_focused()
    page.keyboard.press("r")
    expect(dashboard.notice(page)).to_contain_text("is rejected.")
    expect(page.get_by_role("heading", name="1 call")).to_be_visible()
    states = [call_approvals.find(key).state for key in (first, second, third, other)]
    assert states == ["approved", "rejected", "pending", "rejected"]


@pytest.mark.usefixtures("demo")
def test_a_call_that_arrives_or_was_decided_elsewhere_changes_the_open_page(open_page: OpensPage) -> None:
    call = asking.ask({"amount": 600}, agent="support-desk", tool="think")
    page = open_page("/review/approvals/", expected_errors="status of 409")
    page.get_by_placeholder("Reason if you reject").fill("Half a sen")
    late = asking.ask({"amount": 700}, agent="support-desk", tool="think")
    expect(page.locator(f"#call-{late.key}")).to_be_visible(timeout=15_000)
    expect(page.get_by_placeholder("Reason if you reject").first).to_have_value("Half a sen")
    call_approvals.approve(writing.by("otto", via="api"), call.key, call.shown)
    page.locator(f"#call-{call.key}").get_by_role("button", name="Reject").click()
    expect(dashboard.notice(page)).to_contain_text("Nothing was decided")
    expect(dashboard.notice(page)).to_contain_text("approved by otto")
    expect(page.locator(f"#call-{call.key}")).to_have_count(0)


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
