"""Tests of requests that are slow, lost or repeated, and of responses that arrive out of order."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser import dashboard, devices, network
from tests.browser.conftest import OpensPage
from toolbelt import models
from toolbelt.store import snapshots

pytestmark = pytest.mark.browser

PENDING = re.compile(r"\bhtmx-request\b")
STATUS = "git__git_status"
CHANNELS = "slack__slack_list_channels"
IS_OFF = "toolkit local_git is off"
LOST = "ERR_CONNECTION_RESET|ERR_INTERNET_DISCONNECTED|htmx:sendError"
# Record the animation of a pending choice: the response may end it before the test looks.
RECORD_FADING = """() => {
  const look = () => {
    for (const chosen of document.querySelectorAll(".threeway :checked + span")) {
      if (getComputedStyle(chosen).animationName === "fading") document.documentElement.dataset.fading = "seen";
    }
  };
  look();
  // A timer, because Chromium draws no frames of a page that it considers covered.
  setInterval(look, 5);
}"""


@pytest.fixture
def runner(open_page: OpensPage) -> Page:
    """Return olive's browser at the Access page of an agent that works with Git."""
    return open_page("/agents/runner/")


def status_row(page: Page) -> Locator:
    return dashboard.tool_row(page, "local_git", STATUS)


def switch_form(page: Page, toolkit: str) -> Locator:
    return dashboard.section(page, toolkit).locator("form[data-control=switch]")


def turn_off_local_git(page: Page) -> None:
    dashboard.switch(page, "local_git").click()
    expect(dashboard.notice(page)).to_contain_text("local_git is off for Runner runner.")


# Requests that are overtaken.


@devices.on_phone
def test_a_filter_response_from_before_a_flip_is_requested_again(runner: Page) -> None:
    held = network.HeldResponses(runner, "GET")
    runner.get_by_role("searchbox").fill("git_")
    held.wait_for(1)
    turn_off_local_git(runner)
    held.wait_for(2)
    held.deliver(1)
    expect(status_row(runner)).to_contain_text(IS_OFF)
    expect(dashboard.switch(runner, "local_git")).to_have_attribute("aria-checked", "false")
    expect(runner).to_have_url(re.compile("q=git_"))


def test_a_section_response_from_before_or_during_a_flip_is_requested_again(runner: Page) -> None:
    held = network.HeldResponses(runner, "GET")
    dashboard.section_summary(runner, "local_git").press("Enter")
    held.wait_for(1)
    turn_off_local_git(runner)
    held.wait_for(2)
    held.deliver(1)
    expect(status_row(runner)).to_contain_text(IS_OFF)

    # A response that arrives while the flip is pending does not replace the pending form.
    reads, changes = network.HeldResponses(runner, "GET"), network.HeldResponses(runner, "POST")
    section = dashboard.section(runner, "code_sandbox")
    dashboard.section_summary(runner, "code_sandbox").press("Enter")
    reads.wait_for(1)
    dashboard.switch(runner, "code_sandbox").click()
    changes.wait_for(1)
    reads.deliver(0)
    expect(section.locator(".section-more")).not_to_have_class(PENDING)
    expect(switch_form(runner, "code_sandbox")).to_have_class(PENDING)
    expect(section.locator("li.tool")).to_have_count(0)
    changes.deliver(0)
    reads.wait_for(2)
    reads.deliver(1)
    expect(section.locator("li.tool").first).to_contain_text("toolkit code_sandbox is off")


@devices.on_phone
def test_filters_that_are_chosen_during_flips_wait_for_the_last_flip(access: Page) -> None:
    held = network.HeldResponses(access, "POST")
    for count, toolkit in enumerate(("tickets", "notion_docs"), 1):
        dashboard.switch(access, toolkit).click()
        held.wait_for(count)
    with network.recorded_requests(access, "show=") as filters:
        for state in ("Overridden", "On"):
            dashboard.filter_by_state(access, state)
        held.deliver(1)
        expect(dashboard.notice(access)).to_contain_text("notion_docs is off for Assistant assistant.")
        held.deliver(0)
        expect(access).to_have_url(re.compile("show=active"))
    expect(dashboard.section(access, "tickets")).to_have_count(0)
    assert filters == ["active"]


def test_a_late_response_does_not_overwrite_a_newer_one(open_page: OpensPage) -> None:
    page = open_page("/agents/assistant/")
    held = network.HeldResponses(page, "POST")
    for count, toolkit in enumerate(("tickets", "notion_docs"), 1):
        dashboard.switch(page, toolkit).click()
        held.wait_for(count)
    held.deliver(1)
    expect(switch_form(page, "notion_docs")).not_to_have_class(PENDING)
    held.deliver(0)
    expect(switch_form(page, "tickets")).not_to_have_class(PENDING)
    for toolkit in ("tickets", "notion_docs"):
        expect(dashboard.switch(page, toolkit)).to_have_attribute("aria-checked", "false")
    expect(page.locator("#agent-facts")).to_contain_text("turned off Docs in Notion")
    # The next flip sends this, so that it is not mistaken for a conflict with another operator.
    expect(switch_form(page, "notion_docs").locator("[name=was]")).to_have_value("false")

    page.goto("/matrix/?agent=assistant")
    held = network.HeldResponses(page, "POST")
    switches = [
        page.get_by_role("switch", name=f"{name} for Assistant")
        for name in ("Code sandbox", "Maps and travel")
    ]
    requested = [switch.get_attribute("value") or "" for switch in switches]
    for count, switch in enumerate(switches, 1):
        switch.click()
        held.wait_for(count)
    held.deliver(1)
    expect(switches[1]).to_have_attribute("data-stored", requested[1])
    held.deliver(0)
    expect(page.locator("form.htmx-request")).to_have_count(0)
    for switch, value in zip(switches, requested, strict=True):
        expect(switch).to_have_attribute("data-stored", value)


@devices.on_phone
def test_a_late_response_to_a_removed_form_changes_nothing_back(open_page: OpensPage) -> None:
    page = open_page("/agents/runner/?q=wikipedia&open=toolkit-research")
    held = network.HeldResponses(page, "POST")
    reset = dashboard.section(page, "research").get_by_role("button", name="Reset overrides")
    reset.click()
    held.wait_for(1)
    dashboard.switch(page, "research").click()
    held.wait_for(2)
    held.deliver(1)
    # The response already includes the reset, so there is nothing left to reset.
    expect(reset).to_have_count(0)
    held.deliver(0)
    expect(dashboard.notice(page)).to_contain_text("1 override of Runner runner reset to default.")
    expect(dashboard.switch(page, "research")).to_have_attribute("data-stored", "false")
    expect(switch_form(page, "research").locator("[name=was]")).to_have_value("false")


def test_an_override_is_sent_and_stays_although_a_filter_replaces_its_row(open_page: OpensPage) -> None:
    page = open_page("/agents/runner/?open=toolkit-local_git")
    status_row(page).wait_for()
    held = network.HeldResponses(page, "GET")
    page.get_by_role("searchbox").fill("git_status")
    held.wait_for(1)
    # A click, because the response may show the former state for a moment.
    dashboard.override(page, "local_git", STATUS, "Off").click(force=True)
    held.deliver(0)
    held.wait_for(2)
    held.deliver(1)
    expect(page).to_have_url(re.compile("q=git_status"))
    expect(status_row(page)).to_contain_text("its override is off")
    expect(dashboard.override(page, "local_git", STATUS, "Off")).to_be_checked()
    expect(page.locator("li.tool")).to_have_count(1)
    expect(dashboard.notice(page)).to_contain_text(f"{STATUS} is off for Runner runner.")
    assert snapshots.find("runner", None).agent.overrides[STATUS] is False
    assert models.AuditEntry.objects.count() == 1


@devices.on_phone
def test_the_last_typed_filter_wins_and_sections_open_with_the_tools_that_match(runner: Page) -> None:
    held = network.HeldResponses(runner, "GET")
    for count, text in enumerate(("slack", "git_status"), 1):
        runner.get_by_role("searchbox").fill(text)
        held.wait_for(count)
    held.deliver(1)
    expect(runner.locator("li.tool")).to_have_count(1)
    held.deliver(0)
    expect(runner).to_have_url(re.compile("q=git_status"))
    expect(status_row(runner)).to_be_visible()
    held.stop_holding()
    runner.get_by_role("searchbox").fill("")
    dashboard.filter_by_state(runner, "May be destructive")
    expect(runner).to_have_url(re.compile("show=destructive"))
    section = dashboard.open_section(runner, "local_git")
    expect(section.locator("li.tool").filter(has_not_text="destructive")).to_have_count(0)


# Requests that are pending.


def test_pending_changes_are_shown_and_a_double_click_sends_one(open_page: OpensPage) -> None:
    page = open_page("/agents/assistant/?q=ticket")
    switch, held = dashboard.switch(page, "tickets"), network.HeldResponses(page, "POST")
    switch.dblclick()
    held.wait_for(1)
    expect(switch.locator("span")).to_have_css("animation-name", "waiting")
    switch.click()
    held.deliver(0)
    expect(switch).to_have_attribute("aria-checked", "false")
    expect(dashboard.notice(page)).to_contain_text("tickets is off for Assistant assistant.")
    expect(switch_form(page, "tickets")).not_to_have_class(PENDING)
    # The second half of a double click may arrive after the response to the first.
    switch.dispatch_event("click", {"detail": 2})
    expect(switch_form(page, "tickets")).not_to_have_class(PENDING)
    assert held.count == models.AuditEntry.objects.count() == 1

    page.goto("/agents/assistant/?q=slack")
    page.evaluate(RECORD_FADING)
    dashboard.override(page, "team_chat", CHANNELS, "Off").check(force=True)
    held.wait_for(2)
    expect(page.locator("html")).to_have_attribute("data-fading", "seen")
    chosen = dashboard.tool_row(page, "team_chat", CHANNELS).locator(".threeway label:has(:checked) > span")
    held.deliver(1)
    expect(chosen).to_have_css("animation-name", "none")
    expect(chosen).to_have_text("Off")

    # A form that leads to another page.
    held.stop_holding()
    page.goto("/new/agent/?from=agent:runner")
    page.get_by_role("textbox", name="Key", exact=True).fill("runner-two")
    held = network.HeldResponses(page, "POST")
    page.get_by_role("button", name="Create agent").hover()
    box = page.get_by_role("button", name="Create agent").bounding_box() or pytest.fail("there is no button")
    for _ in range(2):
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        held.wait_for(1)
    held.deliver(held.count - 1)
    expect(dashboard.notice(page)).to_contain_text("Agent Runner runner-two created.")
    assert held.count == 1


@devices.on_phone
def test_a_notice_reports_a_slow_response_until_it_arrives(open_page: OpensPage) -> None:
    page = open_page("/agents/runner/?q=issue_")
    held = network.HeldResponses(page, "POST")
    network.shorten_timers(page)
    dashboard.switch(page, "issues").click()
    expect(dashboard.notice(page)).to_contain_text("Still waiting for a response.")
    expect(page.locator("#live")).to_contain_text("Still waiting for a response.")
    held.deliver(0)
    # The response is a confirmation, which replaces no notice.
    expect(dashboard.confirmation(page)).to_contain_text("Turn on Issues issues for Runner runner?")
    expect(dashboard.notice(page)).not_to_contain_text("Still waiting")


# Requests that are lost.


def test_a_lost_change_is_reported_and_can_be_repeated(
    open_page: OpensPage,
) -> None:
    page = open_page("/agents/assistant/?q=ticket", expected_errors=LOST)
    notice, switch = dashboard.notice(page), dashboard.switch(page, "tickets")
    held = network.HeldResponses(page, "POST")
    switch.click()
    held.wait_for(1)
    held.drop(0)
    expect(notice).to_contain_text("Toolbelt did not respond. This page may be out of date")
    expect(switch).to_have_attribute("aria-checked", "true")
    expect(switch).to_be_enabled()
    held.stop_holding()
    notice.get_by_role("link", name="Reload the page").click()
    expect(switch).to_have_attribute("aria-checked", "false")
    assert snapshots.find("assistant", None).agent.switches["tickets"] is False

    page.goto("/agents/assistant/?q=slack")
    page.context.set_offline(True)
    dashboard.override(page, "team_chat", CHANNELS, "Off").check(force=True)
    expect(notice).to_contain_text("Toolbelt did not respond.")
    expect(dashboard.override(page, "team_chat", CHANNELS, "Default")).to_be_checked()
    page.context.set_offline(False)
    dashboard.override(page, "team_chat", CHANNELS, "Off").check(force=True)
    expect(dashboard.tool_row(page, "team_chat", CHANNELS)).to_contain_text("its override is off")


@devices.on_phone
def test_a_lost_section_loads_when_reopened_and_a_lost_flip_blocks_nothing(
    open_page: OpensPage,
) -> None:
    page = open_page("/agents/runner/", expected_errors=LOST)
    reads = network.HeldResponses(page, "GET")
    research = dashboard.section_summary(page, "research")
    research.press("Enter")
    reads.wait_for(1)
    reads.drop(0)
    expect(dashboard.notice(page)).to_contain_text("Toolbelt did not respond.")
    reads.stop_holding()
    research.press("Enter")
    research.press("Enter")
    expect(dashboard.section(page, "research").locator("li.tool").first).to_be_visible()
    dashboard.notice(page).get_by_role("button", name="Dismiss").click()

    changes = network.HeldResponses(page, "POST")
    dashboard.switch(page, "local_git").click()
    changes.wait_for(1)
    dashboard.section_summary(page, "local_git").press("Enter")
    changes.drop(0)
    expect(dashboard.notice(page)).to_contain_text("Toolbelt did not respond.")
    # The section shows what the server stored although its response was lost.
    expect(status_row(page)).to_contain_text(IS_OFF)
