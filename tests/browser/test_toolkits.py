"""Tests that a toolkit is switched, tried and blocked on its own page, with scripts and without."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser import looks, operating
from tests.browser.conftest import OpensPage
from toolbelt.store import snapshots

pytestmark = pytest.mark.browser

LOCAL_GIT = "/toolkits/local_git/"


def row_of(page: Page, agent: str) -> Locator:
    """Find the line of one agent."""
    return page.locator("li.agent-switch").filter(has=page.get_by_role("link", name=agent, exact=True))


@looks.with_scripts
def test_the_page_follows_a_switch_and_a_block_for_everyone(open_page: OpensPage) -> None:
    page = open_page(f"{LOCAL_GIT}?whose=runner")
    runner = row_of(page, "runner")
    expect(page.locator("#preview-result")).to_contain_text("12 of 12 tools on")
    runner.get_by_role("switch").click()
    expect(operating.notice(page)).to_contain_text("local_git is off for runner.")
    expect(runner).to_contain_text("toolkit local_git is off")
    expect(runner.get_by_role("switch")).to_have_attribute("aria-checked", "false")
    expect(runner.get_by_role("switch")).to_be_focused()
    expect(page.locator("#preview-result")).to_contain_text("0 of 12 tools on")
    operating.notice(page).get_by_role("button", name="Undo").click()
    expect(runner).to_contain_text("12 of 12 on")
    expect(runner.get_by_role("switch")).to_have_attribute("aria-checked", "true")
    runner.get_by_role("button", name="Reset to default").click()
    expect(runner.get_by_role("button", name="Set to Off")).to_be_visible()
    assert "local_git" not in snapshots.find("runner", None).agent.switches

    page.get_by_role("button", name="Block for everyone").click()
    expect(operating.notice(page)).to_contain_text("local_git is blocked for everyone.")
    expect(page.locator("#marks")).to_contain_text("blocked for everyone")
    expect(runner).to_contain_text("toolkit local_git is blocked for everyone")
    page.get_by_role("button", name="Unblock").click()
    expect(page.locator("#marks")).not_to_contain_text("blocked for everyone")
    expect(page.get_by_role("button", name="Block for everyone")).to_be_focused()


@looks.with_scripts
def test_a_message_is_tried_while_it_is_typed_and_a_question_is_asked(open_page: OpensPage) -> None:
    page = open_page("/toolkits/issues/")
    page.get_by_label("Try a message").press_sequentially("file a bug")
    expect(page.get_by_text("matches first")).to_be_visible()
    expect(page).to_have_url(re.compile("message=file(%20|[+])a(%20|[+])bug$"))
    row_of(page, "runner").get_by_role("switch").click()
    page.get_by_role("dialog").get_by_role("button", name="Turn on").click()
    expect(row_of(page, "runner")).to_contain_text("toolkit issues is on")


@looks.without_scripts
def test_it_all_works_without_scripts(open_page: OpensPage) -> None:
    page = open_page(LOCAL_GIT)
    row_of(page, "runner").get_by_role("switch").click()
    expect(operating.notice(page)).to_contain_text("local_git is off for runner.")
    expect(page).to_have_url(LOCAL_GIT)
    page.get_by_role("button", name="Block for everyone").click()
    expect(operating.notice(page)).to_contain_text("local_git is blocked for everyone.")
    operating.notice(page).get_by_role("button", name="Undo").click()
    expect(page.get_by_role("button", name="Block for everyone")).to_be_visible()
    page.get_by_label("Try a message").fill("commit this")
    page.get_by_role("button", name="Try", exact=True).click()
    expect(page.get_by_text("matches first")).to_be_visible()
