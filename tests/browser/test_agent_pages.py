"""Tests of an agent's pages beside Access: typing, copying, issuing tokens."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser import looks, operating
from tests.browser.conftest import OpensPage
from toolbelt.runtime import credentials

pytestmark = pytest.mark.browser

CLIPBOARD = ["clipboard-read", "clipboard-write"]


def copied(page: Page) -> str:
    """Return what stands in the clipboard."""
    text: str = page.evaluate("navigator.clipboard.readText()")
    return text


@looks.with_scripts
def test_a_message_is_answered_while_one_types_and_the_json_is_copied(open_page: OpensPage) -> None:
    page = open_page("/agents/assistant/preview/", permissions=CLIPBOARD)
    message = page.get_by_label("Try a message")
    message.press_sequentially("find papers")
    expect(page.locator("#ask-directive")).to_contain_text("must call one")
    expect(message).to_be_focused()
    assert "message=find%20papers" in page.url
    page.get_by_role("radio", name="Provider JSON").check(force=True)
    page.locator("[name=format]").select_option("anthropic")
    expect(page.get_by_role("heading", name="Anthropic")).to_be_visible()
    page.get_by_role("button", name="Copy the JSON").click()
    expect(page.get_by_role("button", name="Copied the JSON")).to_be_visible()
    assert copied(page) == page.locator("#provider-json").text_content()
    assert copied(page).startswith("{")
    page.get_by_role("radio", name="Why?").check(force=True)
    page.get_by_label("Why is this tool on or off?").fill("shell")
    expect(page.locator(".trace .decides")).to_have_count(1)
    page.reload()
    expect(message).to_have_value("find papers")


@looks.with_scripts
def test_a_token_is_issued_copied_and_revoked(open_page: OpensPage) -> None:
    page = open_page("/tokens/?agent=runner", permissions=CLIPBOARD)
    page.get_by_role("button", name="Issue").click()
    page.get_by_role("button", name="Copy the token").click()
    expect(page.get_by_role("button", name="Copied the token")).to_be_visible()
    bearer = credentials.recognize(copied(page))
    assert bearer is not None
    assert bearer.agent == "runner"
    page.get_by_role("button", name=f"Revoke token {bearer.prefix}").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(operating.notice(page)).to_contain_text("revoked.")
    assert credentials.recognize(copied(page)) is None
    page.reload()
    expect(page.locator("#token-text")).to_have_count(0)


@looks.with_scripts
def test_what_connects_a_client_is_chosen_and_copied(open_page: OpensPage) -> None:
    page = open_page("/agents/runner/connect/", permissions=CLIPBOARD)
    clients = page.get_by_role("group", name="MCP clients").get_by_role("radio")
    clients.last.check(force=True)
    shown = page.locator(f"#way-{clients.last.get_attribute('value')}")
    expect(shown).to_be_visible()
    snippet = page.locator(".snippet").filter(has=shown)
    snippet.get_by_role("button", name="Copy").click()
    expect(snippet.get_by_role("button", name="Copied")).to_be_visible()
    assert copied(page) == shown.text_content()


@looks.with_scripts
def test_a_notice_goes_with_the_next_change_and_a_copy_is_told_for_a_moment(open_page: OpensPage) -> None:
    page = open_page("/new/agent/", permissions=CLIPBOARD)
    page.get_by_role("textbox", name="Key").fill("newcomer")
    page.get_by_role("button", name="Create agent").click()
    expect(operating.notice(page)).to_contain_text("newcomer created")
    page.get_by_role("button", name="Create token").click()
    expect(page.get_by_text("not shown again")).to_be_visible()
    expect(operating.notice(page)).not_to_contain_text("created")
    # All of the command is in sight: the button is beside it, or above it.
    code = page.locator("#way-claude-code")
    assert code.evaluate("(pre) => pre.scrollWidth <= pre.clientWidth")
    copy = page.get_by_role("button", name="Copy Claude Code")
    text, button = code.bounding_box(), copy.bounding_box()
    assert text is not None
    assert button is not None
    assert button["x"] >= text["x"] + text["width"] or button["y"] + button["height"] <= text["y"]
    copy.click()
    expect(page.get_by_role("button", name="Copied Claude Code")).to_be_visible()
    expect(copy).to_be_visible()
    expect(page.locator("#live")).to_have_text("")


def test_in_a_low_window_the_account_and_the_link_of_this_page_are_in_sight(open_page: OpensPage) -> None:
    page = open_page("/belt/", width=1280)
    for height in (800, 600):
        page.set_viewport_size({"width": 1280, "height": height})
        page.reload()
        menu = page.locator(".frame-wide")
        expect(menu.locator(".you summary")).to_be_in_viewport(ratio=1)
        expect(menu.get_by_role("link", name="Import & export")).to_be_in_viewport(ratio=1)
        assert page.evaluate("scrollY") == 0


@looks.with_scripts
def test_a_client_that_connects_is_seen_without_a_press(open_page: OpensPage) -> None:
    page = open_page("/agents/kiosk/connect/")
    page.get_by_role("radio", name="Codex").check(force=True)
    page.get_by_role("button", name="Create token").click()
    shown = page.locator("#token-codex")
    expect(shown).to_be_visible()
    waiting = page.get_by_role("status").filter(has_text="Waiting for the first request")
    expect(waiting).to_be_visible()
    text = (shown.text_content() or "").strip().removeprefix("export TOOLBELT_TOKEN=")
    assert credentials.recognize(text) is not None
    credentials.write_uses()
    if not operating.runs_scripts(page):
        page.get_by_role("link", name="Check now").click()
    expect(page.get_by_role("status").filter(has_text="Connected")).to_be_visible()


@looks.with_scripts
def test_the_key_in_the_head_of_a_page_is_copied_or_at_least_selected(open_page: OpensPage) -> None:
    page = open_page("/tools/git__git_status/", permissions=CLIPBOARD)
    button = page.get_by_role("button", name="Copy git__git_status")
    button.click()
    expect(page.locator("#live")).to_have_text("Copied git__git_status")
    assert copied(page) == "git__git_status"
    # As a page that came over plain HTTP.
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    button.click()
    expect(page.locator("#live")).to_have_text("Selected git__git_status")
    assert page.evaluate("getSelection().toString()") == "git__git_status"
