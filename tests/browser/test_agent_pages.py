"""Do the pages beside Access work as one uses them: typing, copying, evicting, issuing?"""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser import looks, operating
from tests.browser.conftest import OpensPage
from toolbelt.control import sessions, tokens
from toolbelt.runtime import access, calls

pytestmark = pytest.mark.browser

CLIPBOARD = ["clipboard-read", "clipboard-write"]


def copied(page: Page) -> str:
    """Give what stands in the clipboard."""
    text: str = page.evaluate("navigator.clipboard.readText()")
    return text


@looks.with_scripts
def test_a_message_is_answered_while_one_types_and_the_json_is_copied(open_page: OpensPage) -> None:
    page = open_page("/agents/assistant/preview/", permissions=CLIPBOARD)
    message = page.get_by_label("A message to try")
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


@looks.in_each
def test_a_session_is_evicted_once_that_is_confirmed(open_page: OpensPage) -> None:
    for session in ("s1", "s2"):
        calls.run("assistant", "load_tools", {"toolkit": "devops"}, session=session)
    page = open_page("/agents/assistant/sessions/")
    page.get_by_role("button", name="Evict s1").click()
    expect(operating.question(page)).to_contain_text("cannot be undone")
    operating.leave(page)
    expect(page.locator(".session")).to_have_count(2)
    page.get_by_role("button", name="Evict s1").click()
    operating.question(page).get_by_role("button", name="Evict").click()
    expect(operating.notice(page)).to_contain_text("Session s1 of assistant begins anew.")
    expect(page.locator(".session")).to_have_count(1)
    assert sessions.listed("assistant").total == 1


@looks.with_scripts
def test_a_token_is_issued_copied_and_revoked(open_page: OpensPage) -> None:
    page = open_page("/tokens/?agent=runner", permissions=CLIPBOARD)
    page.get_by_role("button", name="Issue").click()
    page.get_by_role("button", name="Copy the token").click()
    expect(page.get_by_role("button", name="Copied the token")).to_be_visible()
    bearer = access.recognize(copied(page))
    assert bearer is not None
    assert bearer.agent == "runner"
    page.get_by_role("button", name=f"Revoke {bearer.prefix}").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(operating.notice(page)).to_contain_text("opens nothing any more")
    assert access.recognize(copied(page)) is None
    page.reload()
    expect(page.locator("#token-text")).to_have_count(0)


@looks.without_scripts
def test_a_message_is_answered_where_no_script_runs(open_page: OpensPage) -> None:
    page = open_page("/agents/runner/preview/")
    page.get_by_label("A message to try").fill("commit this")
    page.get_by_role("radio", name="Policy").check(force=True)
    page.get_by_role("button", name="Show").click()
    expect(page.locator("#ask-directive")).to_contain_text("must call one")
    expect(page.locator("#preview .policy").first).to_be_visible()


@looks.without_scripts
def test_a_token_is_issued_and_revoked_where_no_script_runs(open_page: OpensPage) -> None:
    page = open_page("/tokens/?agent=runner")
    page.get_by_role("button", name="Issue").click()
    expect(page.get_by_text("never shown again")).to_be_visible()
    page.get_by_role("button", name="Revoke").click()
    page.get_by_label("Reason").fill("A test.")
    page.get_by_role("button", name="Revoke").click()
    expect(operating.notice(page)).to_contain_text("opens nothing any more")
    assert not [token for token in tokens.listed() if token.revoked is None]
