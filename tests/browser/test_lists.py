"""Tests of the matrix, the list of tools and the page of a toolkit: filters and switches that update in place."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser import dashboard, devices
from tests.browser.conftest import OpensPage
from toolbelt.store import snapshots

pytestmark = pytest.mark.browser


@devices.on_phone
def test_a_matrix_cell_is_flipped_and_reset_in_place(open_page: OpensPage) -> None:
    page = open_page("/matrix/")
    page.get_by_role("searchbox").fill("git")
    expect(page.locator("#matches")).to_contain_text("1 toolkit,")
    # A phone shows one agent at a time.
    page.get_by_role("link", name="runner").click()
    expect(page.locator("select[name=agent]")).to_have_value("runner")
    switch = page.get_by_role("switch", name="Local git for runner")
    cell = page.locator("td").filter(has=switch)
    switch.click()
    expect(dashboard.notice(page)).to_contain_text("local_git is off for Runner runner.")
    expect(switch).to_have_attribute("aria-checked", "false")
    expect(cell).to_contain_text("toolkit local_git is off")
    cell.locator("[data-other]").click()
    expect(dashboard.notice(page)).to_contain_text("local_git is reset to default for Runner runner.")
    expect(switch).to_have_attribute("data-stored", "unset")
    assert "local_git" not in snapshots.find("runner", None).agent.switches


def test_filters_of_the_tools_combine_and_stay_in_the_url(open_page: OpensPage) -> None:
    page = open_page("/tools/")
    page.get_by_label("Plugin").select_option("git")
    expect(page.locator("#matches")).to_contain_text("12")
    page.get_by_label("Risk").select_option("read-only")
    expect(page).to_have_url(re.compile("plugin=git.*risk=read-only|risk=read-only.*plugin=git"))
    expect(page.get_by_role("link", name="git_commit")).to_have_count(0)
    page.get_by_role("searchbox").fill("git_status")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.reload()
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_role("link", name="git_status").click()
    expect(page.get_by_role("heading", name="Agents")).to_be_visible()


def agent_row(page: Page, agent: str) -> Locator:
    return page.locator("li.agent-switch").filter(has=page.get_by_role("link", name=agent, exact=True))


def test_a_toolkit_page_follows_its_switches_blocks_and_messages_in_place(open_page: OpensPage) -> None:
    page = open_page("/toolkits/local_git/?whose=runner")
    runner = agent_row(page, "Runner")
    expect(page.locator("#preview-result")).to_contain_text("12 of 12 tools on")
    runner.get_by_role("switch").click()
    expect(dashboard.notice(page)).to_contain_text("local_git is off for Runner runner.")
    expect(runner).to_contain_text("toolkit local_git is off")
    expect(runner.get_by_role("switch")).to_have_attribute("aria-checked", "false")
    expect(runner.get_by_role("switch")).to_be_focused()
    expect(page.locator("#preview-result")).to_contain_text("0 of 12 tools on")
    dashboard.notice(page).get_by_role("button", name="Undo").click()
    expect(runner).to_contain_text("12 of 12 on")
    expect(runner.get_by_role("switch")).to_have_attribute("aria-checked", "true")
    runner.get_by_role("button", name="Reset to default").click()
    expect(runner.get_by_role("button", name="Set to Off")).to_be_visible()
    assert "local_git" not in snapshots.find("runner", None).agent.switches

    page.get_by_role("button", name="Block for everyone").click()
    expect(dashboard.notice(page)).to_contain_text("local_git is blocked for everyone.")
    expect(page.locator("#marks")).to_contain_text("blocked for everyone")
    expect(runner).to_contain_text("toolkit local_git is blocked for everyone")
    page.get_by_role("button", name="Unblock").click()
    expect(page.locator("#marks")).not_to_contain_text("blocked for everyone")
    expect(page.get_by_role("button", name="Block for everyone")).to_be_focused()

    page.goto("/toolkits/issues/")
    page.get_by_label("Try a message").press_sequentially("file a bug")
    expect(page.get_by_text("matches first")).to_be_visible()
    expect(page).to_have_url(re.compile("message=file(%20|[+])a(%20|[+])bug$"))
    agent_row(page, "Runner").get_by_role("switch").click()
    page.get_by_role("dialog").get_by_role("button", name="Turn on").click()
    expect(agent_row(page, "Runner")).to_contain_text("toolkit issues is on")
