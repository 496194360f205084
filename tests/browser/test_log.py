"""Does one find a change in the log, take it away as a file, take it back, and bring back what was?"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser import looks, operating
from tests.browser.conftest import OpensPage
from toolbelt.control import actors, switches, tools_config
from toolbelt.store import snapshots

pytestmark = pytest.mark.browser

OTTO = actors.Actor(name="otto", via="api")


@pytest.fixture
def changed(demo: str) -> None:
    """Let otto change two things in one act, and one by itself."""
    wanted = {"git__git_status": False, "git__git_log": False}
    tools_config.change(OTTO, "runner", wanted, was=dict.fromkeys(wanted))
    switches.flip(OTTO, "assistant", "tickets", False, reason="Too many.")


def taken(page: Page, button: str) -> str:
    """Take a file away; give what is in it."""
    with page.expect_download() as download:
        page.get_by_role("link", name=f"Download {button}").click()
    return Path(download.value.path()).read_text()


@looks.in_each
@pytest.mark.usefixtures("changed")
def test_the_log_is_narrowed_and_taken_away_as_it_is_shown(open_page: OpensPage) -> None:
    page = open_page("/changes/")
    expect(page.locator(".entry")).to_have_count(3)
    page.get_by_label("Agent").select_option("assistant")
    operating.save(page.locator("#filter"), "Apply")
    expect(page.locator(".entry")).to_have_count(1)
    expect(page.locator(".entry")).to_contain_text("Too many.")
    expect(page).to_have_url(re.compile("agent=assistant"))
    expect(page.get_by_role("link", name="Download CSV")).to_have_attribute("href", re.compile("assistant"))
    lines = taken(page, "CSV").splitlines()
    assert len(lines) == 2
    assert "tickets" in lines[1]
    assert [entry["key"] for entry in json.loads(taken(page, "JSON"))] == ["tickets"]


@looks.in_each
@pytest.mark.usefixtures("changed")
def test_an_act_is_looked_at_as_a_whole_and_undone_as_one(open_page: OpensPage) -> None:
    page = open_page("/changes/?agent=runner")
    page.get_by_role("link", name="The whole act").first.click()
    expect(page.locator(".entry")).to_have_count(2)
    page.get_by_role("button", name="Undo all of it").click()
    expect(operating.notice(page)).to_contain_text("Undone")
    overrides = snapshots.find("runner", None).agent.overrides
    assert not {"git__git_status", "git__git_log"} & overrides.keys()


@looks.in_each
@pytest.mark.usefixtures("changed")
def test_one_change_is_undone_in_the_log(open_page: OpensPage) -> None:
    page = open_page("/changes/?key=tickets")
    page.locator("#log").get_by_role("button", name="Undo").click()
    expect(operating.notice(page)).to_contain_text("Undone: otto turned off tickets.")
    expect(page.locator(".entry")).to_have_count(2)
    assert snapshots.find("assistant", None).agent.switches["tickets"] is True


@looks.in_each
@pytest.mark.usefixtures("changed")
def test_what_an_agent_was_stands_beside_what_it_is_and_is_brought_back(open_page: OpensPage) -> None:
    page = open_page("/agents/assistant/history/")
    page.get_by_role("link", name="As it was then").first.click()
    expect(page.get_by_role("heading", name="Then")).to_be_visible()
    expect(page.get_by_role("heading", name="Now")).to_be_visible()
    # Somebody turns it back on; what it was then is to be had again.
    switches.flip(OTTO, "assistant", "tickets", None, confirm=True)
    page.get_by_role("link", name="Compare and copy back").click()
    page.get_by_role("checkbox", name="tickets").check()
    page.get_by_role("button", name="Copy ticked to assistant").click()
    operating.question(page).get_by_role("button", name="Copy").click()
    expect(operating.notice(page)).to_contain_text("assistant got 1 row")
    assert snapshots.find("assistant", None).agent.switches["tickets"] is False
