"""Tests that a page shows a change although a filter or section was requested before or meanwhile."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Locator, Page, Request, expect

from tests.browser import looks, network, operating
from tests.browser.conftest import OpensPage
from toolbelt import models
from toolbelt.store import snapshots

pytestmark = pytest.mark.browser

BUSY = re.compile(r"\bhtmx-request\b")
STATUS = "git__git_status"
IS_OFF = "toolkit local_git is off"


@pytest.fixture
def runner(open_page: OpensPage) -> Page:
    """Return an operator's browser at an agent that works with Git."""
    return open_page("/agents/runner/")


def status(page: Page) -> Locator:
    """Find the row of a tool that works with Git."""
    return operating.row(page, "local_git", STATUS)


def turn_off(page: Page) -> None:
    """Turn off what works with Git, and wait until that is done."""
    operating.switch(page, "local_git").click()
    expect(operating.notice(page)).to_contain_text("local_git is off for runner.")


@contextmanager
def asking(page: Page, part: str) -> Iterator[list[str]]:
    """List what follows this part in the addresses that the page asks for."""
    found: list[str] = []

    def note(request: Request) -> None:
        _, is_asked, rest = request.url.partition(part)
        if is_asked and request.method == "GET":
            found.append(rest)

    page.on("request", note)
    yield found
    page.remove_listener("request", note)


@looks.with_scripts
def test_a_filter_that_a_flip_overtakes_is_asked_again(runner: Page) -> None:
    line = network.Line(runner, "GET")
    runner.get_by_role("searchbox").fill("git_")
    line.wait_for(1)
    turn_off(runner)
    line.wait_for(2)
    line.deliver(1)
    expect(status(runner)).to_contain_text(IS_OFF)
    expect(operating.switch(runner, "local_git")).to_have_attribute("aria-checked", "false")
    expect(runner).to_have_url(re.compile("q=git_"))


@looks.with_scripts
def test_a_section_that_a_flip_overtakes_is_asked_for_again(runner: Page) -> None:
    line = network.Line(runner, "GET")
    operating.summary(runner, "local_git").press("Enter")
    line.wait_for(1)
    turn_off(runner)
    line.wait_for(2)
    line.deliver(1)
    expect(status(runner)).to_contain_text(IS_OFF)


@looks.with_scripts
def test_what_comes_while_a_flip_is_under_way_takes_away_nothing(runner: Page) -> None:
    reads, changes = network.Line(runner, "GET"), network.Line(runner, "POST")
    section = operating.section(runner, "local_git")
    operating.summary(runner, "local_git").press("Enter")
    reads.wait_for(1)
    operating.switch(runner, "local_git").click()
    changes.wait_for(1)
    reads.deliver(0)
    expect(section.locator(".section-more")).not_to_have_class(BUSY)
    expect(section.locator("form[data-control=switch]")).to_have_class(BUSY)
    expect(section.locator("li.tool")).to_have_count(0)
    changes.deliver(0)
    reads.wait_for(2)
    reads.deliver(1)
    expect(status(runner)).to_contain_text(IS_OFF)


@looks.with_scripts
def test_what_is_asked_while_flips_are_under_way_waits_for_the_last(open_page: OpensPage) -> None:
    page = open_page("/agents/assistant/")
    changes = network.Line(page, "POST")
    for count, toolkit in enumerate(("tickets", "notion_docs"), 1):
        operating.switch(page, toolkit).click()
        changes.wait_for(count)
    with asking(page, "show=") as asked:
        for word in ("Overridden", "On"):
            operating.show(page, word)
        changes.deliver(1)
        expect(operating.notice(page)).to_contain_text("notion_docs is off for assistant.")
        changes.deliver(0)
        expect(page).to_have_url(re.compile("show=active"))
    expect(operating.section(page, "tickets")).to_have_count(0)
    assert asked == ["active"]


@looks.with_scripts
def test_a_flip_that_gets_lost_holds_up_nothing(open_page: OpensPage) -> None:
    page = open_page("/agents/runner/", expects="ERR_CONNECTION_RESET|htmx:sendError")
    changes = network.Line(page, "POST")
    operating.switch(page, "local_git").click()
    changes.wait_for(1)
    operating.summary(page, "local_git").press("Enter")
    changes.lose(0)
    expect(operating.notice(page)).to_contain_text("Toolbelt did not respond.")
    # What is stored by now, the page could not know otherwise.
    expect(status(page)).to_contain_text(IS_OFF)


@looks.with_scripts
def test_a_late_answer_to_a_form_that_is_gone_takes_nothing_back(open_page: OpensPage) -> None:
    page = open_page("/agents/runner/?q=wikipedia&open=toolkit-research")
    line = network.Line(page, "POST")
    operating.section(page, "research").get_by_role("button", name="Reset overrides").click()
    line.wait_for(1)
    operating.switch(page, "research").click()
    line.wait_for(2)
    line.deliver(1)
    # Its answer knew of the reset: nothing is left to be reset.
    expect(operating.section(page, "research").get_by_role("button", name="Reset overrides")).to_have_count(0)
    line.deliver(0)
    expect(operating.notice(page)).to_contain_text("1 override of runner reset to default.")
    expect(operating.switch(page, "research")).to_have_attribute("data-stored", "false")
    expect(operating.section(page, "research").locator("form[data-control=switch] [name=was]")).to_have_value(
        "false"
    )


@looks.with_scripts
def test_a_choice_is_sent_before_a_filter_takes_it_away(open_page: OpensPage) -> None:
    page = open_page("/agents/runner/?q=git_")
    line = network.Line(page, "GET")
    page.get_by_role("searchbox").fill("git_st")
    line.wait_for(1)
    operating.choice(page, "local_git", STATUS, "Off").check(force=True)
    line.deliver(0)
    line.wait_for(2)
    line.deliver(1)
    expect(page).to_have_url(re.compile("q=git_st"))
    expect(status(page)).to_contain_text("its override is off")
    assert snapshots.find("runner", None).agent.overrides[STATUS] is False
    assert models.AuditEntry.objects.count() == 1


@looks.with_scripts
def test_the_filter_that_was_typed_last_wins_and_a_section_opens_with_what_fits(runner: Page) -> None:
    line = network.Line(runner, "GET")
    for count, typed in enumerate(("slack", "git_status"), 1):
        runner.get_by_role("searchbox").fill(typed)
        line.wait_for(count)
    line.deliver(1)
    expect(runner.locator("li.tool")).to_have_count(1)
    line.deliver(0)
    expect(runner).to_have_url(re.compile("q=git_status"))
    expect(status(runner)).to_be_visible()
    line.open()
    runner.get_by_role("searchbox").fill("")
    operating.show(runner, "May be destructive")
    expect(runner).to_have_url(re.compile("show=destructive"))
    section = operating.opened(runner, "local_git")
    expect(section.locator("li.tool").filter(has_not_text="destructive")).to_have_count(0)


@looks.with_scripts
def test_a_section_that_did_not_come_comes_when_it_is_opened_again(open_page: OpensPage) -> None:
    page = open_page("/agents/runner/", expects="ERR_CONNECTION_RESET|htmx:sendError")
    line = network.Line(page, "GET")
    summary = operating.summary(page, "local_git")
    summary.press("Enter")
    line.wait_for(1)
    line.lose(0)
    expect(operating.notice(page)).to_contain_text("Toolbelt did not respond.")
    line.open()
    summary.press("Enter")
    summary.press("Enter")
    expect(status(page)).to_be_visible()


@looks.with_scripts
def test_a_menu_asks_what_it_would_change_as_it_opens_and_no_more(open_page: OpensPage) -> None:
    page = open_page("/agents/runner/?q=git_status")
    with asking(page, "/effect/") as asked:
        expect(operating.more(page, "local_git")).to_contain_text("−12 tools")
        page.keyboard.press("Escape")
        status(page).locator(".acts-opener").click()
        expect(page.locator(".acts-body:popover-open")).to_contain_text("−1 tool")
    assert asked == ["local_git/", f"{STATUS}/"]
