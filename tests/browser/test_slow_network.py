"""Tests of a page while a response is pending, is overtaken by a newer one, or is lost."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser import looks, network, operating
from tests.browser.conftest import OpensPage
from toolbelt import models
from toolbelt.store import snapshots

pytestmark = pytest.mark.browser

BUSY = re.compile(r"\bhtmx-request\b")
TALK = "slack__slack_list_channels"
WATCH_ANIMATIONS = """() => {
  const look = () => {
    for (const chosen of document.querySelectorAll(".threeway :checked + span")) {
      if (getComputedStyle(chosen).animationName === "fading") document.documentElement.dataset.fading = "seen";
    }
  };
  look();
  // Not by frames: Chromium draws none of a page that it takes to be covered.
  setInterval(look, 5);
}"""


def form(page: Page, toolkit: str) -> Locator:
    """Find the form of a toolkit's switch."""
    return operating.section(page, toolkit).locator("form[data-control=switch]")


@looks.with_scripts
def test_a_flip_shows_that_it_is_under_way_and_is_sent_once(open_page: OpensPage) -> None:
    page = open_page("/agents/assistant/?q=ticket")
    switch, line = operating.switch(page, "tickets"), network.Line(page, "POST")
    switch.dblclick()
    line.wait_for(1)
    expect(switch.locator("span")).to_have_css("animation-name", "waiting")
    switch.click()
    line.deliver(0)
    expect(switch).to_have_attribute("aria-checked", "false")
    expect(operating.notice(page)).to_contain_text("tickets is off for assistant.")
    expect(form(page, "tickets")).not_to_have_class(BUSY)
    # The second half of a double click, after the answer to the first.
    switch.dispatch_event("click", {"detail": 2})
    expect(form(page, "tickets")).not_to_have_class(BUSY)
    assert line.sent == models.AuditEntry.objects.count() == 1


@looks.with_scripts
def test_a_choice_shows_that_it_is_under_way(open_page: OpensPage) -> None:
    page = open_page("/agents/assistant/?q=slack")
    line = network.Line(page, "POST")
    # The page may learn of the change by its stream before the answer arrives, so a single look can come too late.
    page.evaluate(WATCH_ANIMATIONS)
    operating.choose(page, "team_chat", TALK, "Off")
    line.wait_for(1)
    expect(page.locator("html")).to_have_attribute("data-fading", "seen")
    chosen = operating.row(page, "team_chat", TALK).locator(".threeway label:has(:checked) > span")
    line.deliver(0)
    expect(chosen).to_have_css("animation-name", "none")
    expect(chosen).to_have_text("Off")


@looks.with_scripts
def test_one_who_waits_long_is_told_so_and_no_longer_than_it_takes(open_page: OpensPage) -> None:
    page = open_page("/agents/runner/?q=issue_")
    line = network.Line(page, "POST")
    operating.switch(page, "issues").click()
    expect(operating.notice(page)).to_contain_text("Still waiting for a response.")
    expect(page.locator("#live")).to_contain_text("Still waiting for a response.")
    line.deliver(0)
    # A question takes the place of no notice.
    expect(operating.question(page)).to_contain_text("Turn on issues for runner?")
    expect(operating.notice(page)).not_to_contain_text("Still waiting")


@looks.with_scripts
def test_a_late_answer_takes_nothing_back_that_a_newer_one_brought(open_page: OpensPage) -> None:
    page = open_page("/agents/assistant/")
    line = network.Line(page, "POST")
    operating.switch(page, "tickets").click()
    line.wait_for(1)
    operating.switch(page, "notion_docs").click()
    line.wait_for(2)
    line.deliver(1)
    expect(form(page, "notion_docs")).not_to_have_class(BUSY)
    line.deliver(0)
    expect(form(page, "tickets")).not_to_have_class(BUSY)
    for toolkit in ("tickets", "notion_docs"):
        expect(operating.switch(page, toolkit)).to_have_attribute("aria-checked", "false")
    expect(page.locator("#agent-facts")).to_contain_text("turned off notion_docs")
    # What is sent with the next flip, so that it is not mistaken for another operator's change.
    expect(form(page, "notion_docs").locator("[name=was]")).to_have_value("false")


@looks.with_scripts
def test_a_late_answer_of_the_matrix_takes_nothing_back(open_page: OpensPage) -> None:
    page = open_page("/matrix/?agent=assistant")
    line = network.Line(page, "POST")
    switches = [
        page.get_by_role("switch", name=f"{name} for assistant") for name in ("Tickets", "Docs in Notion")
    ]
    for count, switch in enumerate(switches, 1):
        switch.click()
        line.wait_for(count)
    wanted = [switch.get_attribute("value") or "" for switch in switches]
    line.deliver(1)
    expect(switches[1]).to_have_attribute("data-stored", wanted[1])
    line.deliver(0)
    expect(page.locator("form.htmx-request")).to_have_count(0)
    for switch, on in zip(switches, wanted, strict=True):
        expect(switch).to_have_attribute("data-stored", on)


@looks.with_scripts
def test_an_answer_that_gets_lost_is_told_and_one_can_look_again(open_page: OpensPage) -> None:
    page = open_page("/agents/assistant/?q=ticket", expects="ERR_CONNECTION_RESET|htmx:sendError")
    line = network.Line(page, "POST")
    operating.switch(page, "tickets").click()
    line.wait_for(1)
    line.lose(0)
    expect(operating.notice(page)).to_contain_text("Toolbelt did not respond. This page may be out of date")
    expect(operating.switch(page, "tickets")).to_have_attribute("aria-checked", "true")
    expect(operating.switch(page, "tickets")).to_be_enabled()
    line.open()
    operating.notice(page).get_by_role("link", name="Reload the page").click()
    expect(operating.switch(page, "tickets")).to_have_attribute("aria-checked", "false")
    assert snapshots.find("assistant", None).agent.switches["tickets"] is False


@looks.with_scripts
def test_without_a_network_a_choice_is_put_back_and_can_be_made_again(open_page: OpensPage) -> None:
    page = open_page("/agents/assistant/?q=slack", expects="ERR_INTERNET_DISCONNECTED|htmx:sendError")
    page.context.set_offline(True)
    operating.choose(page, "team_chat", TALK, "Off")
    expect(operating.notice(page)).to_contain_text("Toolbelt did not respond.")
    expect(operating.choice(page, "team_chat", TALK, "Default")).to_be_checked()
    page.context.set_offline(False)
    operating.choose(page, "team_chat", TALK, "Off")
    expect(operating.row(page, "team_chat", TALK)).to_contain_text("its override is off")


@looks.with_scripts
def test_a_form_that_leads_elsewhere_is_sent_once_too(open_page: OpensPage) -> None:
    page = open_page("/new/agent/?from=agent:runner")
    page.get_by_role("textbox", name="Key", exact=True).fill("runner-two")
    line = network.Line(page, "POST")
    page.get_by_role("button", name="Create agent").hover()
    box = page.get_by_role("button", name="Create agent").bounding_box() or pytest.fail("it is not there")
    for _ in range(2):
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        line.wait_for(1)
    line.deliver(line.sent - 1)
    expect(operating.notice(page)).to_contain_text("Agent runner-two created.")
    assert line.sent == 1
