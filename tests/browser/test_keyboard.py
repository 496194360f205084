"""Tests that the dashboard can be used from the keyboard, and that the focus is never lost."""

from __future__ import annotations

import datetime as dt

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from tests.browser import network, operating
from tests.browser.conftest import OpensPage
from toolbelt import models
from toolbelt.store import snapshots

pytestmark = pytest.mark.browser

STATUS = "git__git_status"

# Whether the focus is visible: on the element, on what is drawn for it, or around it.
SEEN = """() => {
    const here = document.activeElement;
    const drawn = [[here, null], [here, "::before"], [here.nextElementSibling, null]];
    return drawn.some(([element, part]) => {
        if (!element) return false;
        const style = getComputedStyle(element, part);
        return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
    });
}"""


@pytest.fixture
def runner(open_page: OpensPage) -> Page:
    """Return an operator's browser at an agent that works with Git, with those tools open."""
    page = open_page("/agents/runner/?open=toolkit-local_git")
    operating.row(page, "local_git", STATUS).wait_for()
    return page


def test_space_flips_a_switch_and_the_third_state_is_a_button_beside_it(runner: Page) -> None:
    research = operating.switch(runner, "research")
    research.focus()
    for checked in ("true", "false", "true"):
        runner.keyboard.press("Space")
        expect(research).to_have_attribute("aria-checked", checked)
        expect(research).to_be_focused()
    switch = operating.switch(runner, "local_git")
    switch.focus()
    runner.keyboard.press("Tab")
    expect(operating.section(runner, "local_git").locator(".why-link").first).to_be_focused()
    runner.keyboard.press("Tab")
    other = operating.section(runner, "local_git").locator("[data-other]")
    expect(other).to_be_focused()
    expect(other).to_contain_text("Reset to default")
    runner.keyboard.press("Enter")
    expect(switch).to_have_attribute("data-stored", "unset")
    expect(operating.section(runner, "local_git")).to_contain_text("Default")
    expect(other).to_contain_text("Set to Off")
    expect(other).to_be_focused()


def test_arrows_choose_and_the_focus_goes_with_the_choice(runner: Page) -> None:
    row = operating.row(runner, "local_git", STATUS)
    operating.choice(runner, "local_git", STATUS, "Default").focus()
    runner.keyboard.press("ArrowRight")
    expect(row.locator("[name=was]")).to_have_value("true")
    expect(operating.choice(runner, "local_git", STATUS, "On")).to_be_focused()
    runner.keyboard.press("ArrowRight")
    expect(row).to_contain_text("its override is off")
    expect(operating.choice(runner, "local_git", STATUS, "Off")).to_be_focused()


@pytest.mark.parametrize("waits", [False, True], ids=["at once", "while the first is under way"])
def test_fast_arrows_end_where_the_last_one_went(runner: Page, waits: bool) -> None:
    line = network.Line(runner, "POST")
    row = operating.row(runner, "local_git", STATUS)
    operating.choice(runner, "local_git", STATUS, "Default").focus()
    runner.keyboard.press("ArrowRight")
    if waits:
        line.wait_for(1)
    runner.keyboard.press("ArrowRight")
    line.wait_for(1)
    line.open()
    line.deliver(0)
    expect(row.locator("[name=was]")).to_have_value("false")
    expect(operating.choice(runner, "local_git", STATUS, "Off")).to_be_checked()
    expect(operating.choice(runner, "local_git", STATUS, "Off")).to_be_focused()
    assert snapshots.find("runner", None).agent.overrides[STATUS] is False
    expect(operating.notice(runner)).not_to_contain_text("changed by another operator")


def test_a_choice_survives_a_filter_that_answers_in_between(runner: Page) -> None:
    line = network.Line(runner, "GET")
    runner.get_by_role("searchbox").fill("git_status")
    line.wait_for(1)
    line.open()
    # A click, for the filter's answer may put the old state there for a moment: what counts is how it ends.
    operating.choice(runner, "local_git", STATUS, "Off").click(force=True)
    line.deliver(0)
    expect(operating.row(runner, "local_git", STATUS)).to_contain_text("its override is off")
    expect(operating.choice(runner, "local_git", STATUS, "Off")).to_be_checked()
    expect(runner.locator("li.tool")).to_have_count(1)
    expect(operating.notice(runner)).to_contain_text(f"{STATUS} is off for runner.")
    assert snapshots.find("runner", None).agent.overrides[STATUS] is False


def test_what_takes_its_own_button_away_leaves_the_focus_somewhere(runner: Page) -> None:
    switch = operating.switch(runner, "local_git")
    switch.focus()
    runner.keyboard.press("Space")
    undo = operating.notice(runner).get_by_role("button", name="Undo")
    undo.focus()
    runner.keyboard.press("Enter")
    expect(operating.notice(runner)).to_contain_text("Undone")
    expect(operating.notice(runner).get_by_role("button", name="Redo")).to_be_focused()
    operating.notice(runner).get_by_role("button", name="Dismiss").focus()
    runner.keyboard.press("Enter")
    expect(operating.notice(runner)).to_be_empty()
    assert operating.focus(runner) != "nothing"

    operating.choice(runner, "local_git", STATUS, "Off").check(force=True)
    reset = operating.section(runner, "local_git").get_by_role("button", name="Reset overrides")
    reset.focus()
    runner.keyboard.press("Enter")
    expect(reset).to_have_count(0)
    assert operating.focus(runner) == "toolkit-local_git:overrides"


def test_keys_go_through_the_rows_and_press_what_is_in_them(open_page: OpensPage) -> None:
    page = open_page("/agents/runner/")
    first, second = page.locator(".section").nth(0), page.locator(".section").nth(1)
    page.keyboard.press("j")
    expect(first).to_be_focused()
    page.keyboard.press("j")
    expect(second).to_be_focused()
    page.keyboard.press("k")
    expect(first).to_be_focused()
    page.keyboard.press("x")
    expect(first.locator("[name=pick]")).to_be_checked()
    shown = first.get_by_role("switch").get_attribute("aria-checked")
    page.keyboard.press("Space")
    expect(first.get_by_role("switch")).not_to_have_attribute("aria-checked", str(shown))
    expect(first).to_be_focused()
    page.keyboard.press("e")
    expect(first.locator("li.tool").first).to_be_visible()
    page.keyboard.press("j")
    expect(first.locator("li.tool").first).to_be_focused()
    page.get_by_role("searchbox").focus()
    page.keyboard.type("jx")
    expect(page.get_by_role("searchbox")).to_have_value("jx")


def test_a_reason_opens_the_decision_and_closing_it_brings_the_focus_back(runner: Page) -> None:
    reason = operating.section(runner, "local_git").locator(".section-head .why-link")
    reason.focus()
    runner.keyboard.press("Enter")
    panel = runner.locator("#why")
    expect(panel).to_be_visible()
    expect(panel).to_contain_text("Toolkit local_git is on.")
    runner.keyboard.press("Tab")
    assert runner.evaluate("document.querySelector('#why').contains(document.activeElement)")
    runner.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(reason).to_be_focused()
    runner.keyboard.press("Enter")
    panel.get_by_role("button", name="Turn toolkit local_git off").click()
    expect(operating.notice(runner)).to_contain_text("local_git is off for runner.")
    expect(panel).to_be_hidden()
    expect(operating.switch(runner, "local_git")).to_have_attribute("aria-checked", "false")


def test_shortcuts_find_the_filter_and_the_content_and_can_be_switched_off(runner: Page) -> None:
    runner.keyboard.press("Tab")
    expect(runner.get_by_role("link", name="Skip to content")).to_be_focused()
    runner.keyboard.press("Enter")
    expect(runner.get_by_role("main")).to_be_focused()
    runner.keyboard.press("/")
    expect(runner.get_by_role("searchbox")).to_be_focused()
    runner.keyboard.type("/?")
    expect(runner.get_by_role("searchbox")).to_have_value("/?")
    runner.get_by_role("main").focus()
    runner.keyboard.press("?")
    shortcuts = runner.get_by_role("dialog", name="Keyboard shortcuts")
    expect(shortcuts).to_be_visible()
    shortcuts.get_by_role("checkbox").uncheck()
    runner.keyboard.press("Escape")
    expect(shortcuts).to_be_hidden()
    runner.reload()
    runner.keyboard.press("/")
    expect(runner.get_by_role("searchbox")).not_to_be_focused()


@pytest.mark.parametrize(
    ("address", "theme"),
    [("/agents/", "dark"), ("/agents/runner/?q=git_status", "light"), ("/login/", "dark")],
)
def test_wherever_tab_leads_one_sees_where_one_is(open_page: OpensPage, address: str, theme: str) -> None:
    page = open_page(address, who=None if address == "/login/" else "olive", theme=theme)
    page.keyboard.press("Tab")
    stops: list[str] = []
    while (stop := operating.focus(page)) != "nothing" and len(stops) < 120:
        assert page.evaluate(SEEN), f"nothing shows that the focus is at {stop}"
        stops.append(stop)
        page.keyboard.press("Tab")
    assert 2 <= len(stops) < 120


def test_arrows_read_the_days_of_a_chart_and_enter_opens_one(open_page: OpensPage) -> None:
    today = timezone.now()
    for days in (0, 1, 1):
        models.CallRecord.objects.create(
            agent="runner", tool=STATUS, at=today - dt.timedelta(days=days), outcome="ok", duration_ms=7
        )
    page = open_page("/calls/?period=7d")
    chart = page.get_by_role("group", name="3 calls in 7 days")
    expect(chart.locator("a:not([tabindex='-1'])")).to_have_count(1)
    last = chart.get_by_role("link").last
    last.focus()
    page.keyboard.press("ArrowLeft")
    before = chart.get_by_role("link").nth(5)
    expect(before).to_be_focused()
    expect(page.locator(".chart-value").first).to_have_text(f"{before.text_content()}".strip())
    expect(page.locator(".chart-value").first).to_contain_text(": 2 calls")
    page.keyboard.press("Home")
    expect(chart.get_by_role("link").first).to_be_focused()
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(page.locator("#matches")).to_have_text("2 calls, newest first")
