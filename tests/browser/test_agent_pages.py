"""Tests of an agent's Preview and Connect pages and of its tokens: live input, copying, waiting for a client."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser import dashboard, devices
from tests.browser.conftest import OpensPage
from toolbelt.runtime import credentials

pytestmark = pytest.mark.browser

CLIPBOARD = ["clipboard-read", "clipboard-write"]


def clipboard(page: Page) -> str:
    """Return the text in the clipboard."""
    text: str = page.evaluate("navigator.clipboard.readText()")
    return text


def test_the_preview_follows_a_message_and_copies_the_json(open_page: OpensPage) -> None:
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
    assert clipboard(page) == page.locator("#provider-json").text_content()
    assert clipboard(page).startswith("{")
    page.get_by_role("radio", name="Why?").check(force=True)
    page.get_by_label("Why is this tool on or off?").fill("shell")
    expect(page.locator(".trace .decides")).to_have_count(1)
    page.reload()
    expect(message).to_have_value("find papers")


def test_copying_falls_back_to_selecting_and_a_revoked_token_is_rejected(open_page: OpensPage) -> None:
    page = open_page("/tools/git__git_status/", permissions=CLIPBOARD)
    copy = page.get_by_role("button", name="Copy git__git_status")
    copy.click()
    expect(page.locator("#live")).to_have_text("Copied git__git_status")
    assert clipboard(page) == "git__git_status"
    # A page that is loaded over plain HTTP has no clipboard.
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    copy.click()
    expect(page.locator("#live")).to_have_text("Selected git__git_status")
    assert page.evaluate("getSelection().toString()") == "git__git_status"

    page.goto("/tokens/?agent=runner")
    page.get_by_role("button", name="Issue").click()
    page.get_by_role("button", name="Copy the token").click()
    expect(page.get_by_role("button", name="Copied the token")).to_be_visible()
    bearer = credentials.recognize(clipboard(page))
    assert bearer is not None
    assert bearer.agent == "runner"
    page.get_by_role("button", name=f"Revoke token {bearer.prefix}").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(dashboard.notice(page)).to_contain_text("revoked.")
    assert credentials.recognize(clipboard(page)) is None
    page.reload()
    expect(page.locator("#token-text")).to_have_count(0)


@devices.on_phone
def test_a_new_agent_gets_a_token_and_the_connect_page_reports_its_first_request(
    open_page: OpensPage,
) -> None:
    page = open_page("/new/agent/", permissions=CLIPBOARD)
    page.get_by_role("textbox", name="Key").fill("newcomer")
    page.get_by_role("button", name="Create agent").click()
    expect(dashboard.notice(page)).to_contain_text("newcomer created")
    page.get_by_role("button", name="Issue token").click()
    expect(page.get_by_text("not shown again")).to_be_visible()
    # The notice is about the change before.
    expect(dashboard.notice(page)).not_to_contain_text("created")

    # The whole command is visible: its copy button is beside or above it.
    command = page.locator("#way-claude-code")
    assert command.evaluate("(pre) => pre.scrollWidth <= pre.clientWidth")
    copy = page.get_by_role("button", name="Copy Claude Code")
    text, button = command.bounding_box(), copy.bounding_box()
    assert text is not None
    assert button is not None
    assert button["x"] >= text["x"] + text["width"] or button["y"] + button["height"] <= text["y"]
    copy.click()
    expect(page.get_by_role("button", name="Copied Claude Code")).to_be_visible()
    # A moment later, the button and the announcement are as before.
    expect(copy).to_be_visible()
    expect(page.locator("#live")).to_have_text("")

    clients = page.get_by_role("group", name="MCP clients").get_by_role("radio")
    clients.last.check(force=True)
    command = page.locator(f"#way-{clients.last.get_attribute('value')}")
    expect(command).to_be_visible()
    snippet = page.locator(".snippet").filter(has=command)
    snippet.get_by_role("button", name="Copy").click()
    expect(snippet.get_by_role("button", name="Copied")).to_be_visible()
    assert clipboard(page) == command.text_content()

    page.get_by_role("radio", name="Codex").check(force=True)
    expect(page.get_by_role("status").filter(has_text="Waiting for the first request")).to_be_visible()
    token = (page.locator("#token-codex").text_content() or "").strip().removeprefix("export TOOLBELT_TOKEN=")
    assert credentials.recognize(token) is not None
    credentials.write_uses()
    expect(page.get_by_role("status").filter(has_text="Connected")).to_be_visible()
