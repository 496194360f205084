"""Tests that the dashboard can be used from the keyboard, and that the focus is visible and never lost."""

from __future__ import annotations

import datetime as dt

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from tests.browser import dashboard, network
from tests.browser.conftest import OpensPage
from toolbelt import models
from toolbelt.store import snapshots

pytestmark = pytest.mark.browser

STATUS = "git__git_status"

# Whether the focus is visible: on the focused element, on its ::before, or on the element after it.
FOCUS_IS_VISIBLE = """() => {
    const focused = document.activeElement;
    const outlined = [[focused, null], [focused, "::before"], [focused.nextElementSibling, null]];
    return outlined.some(([element, part]) => {
        if (!element) return false;
        const style = getComputedStyle(element, part);
        return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
    });
}"""


@pytest.fixture
def runner(open_page: OpensPage) -> Page:
    """Return olive's browser at the Access page of an agent that works with Git, with those tools open."""
    page = open_page("/agents/runner/?open=toolkit-local_git")
    dashboard.tool_row(page, "local_git", STATUS).wait_for()
    return page


def test_switches_overrides_and_reasons_work_from_the_keyboard(runner: Page) -> None:
    research = dashboard.switch(runner, "research")
    research.focus()
    for checked in ("true", "false", "true"):
        runner.keyboard.press("Space")
        expect(research).to_have_attribute("aria-checked", checked)
        expect(research).to_be_focused()

    section = dashboard.section(runner, "local_git")
    switch, reason = dashboard.switch(runner, "local_git"), section.locator(".section-head .why-link")
    switch.focus()
    runner.keyboard.press("Tab")
    expect(reason).to_be_focused()
    runner.keyboard.press("Enter")
    panel = runner.locator("#why")
    expect(panel).to_be_visible()
    expect(panel).to_contain_text("Toolkit local_git is on.")
    runner.keyboard.press("Tab")
    assert runner.evaluate("document.querySelector('#why').contains(document.activeElement)")
    runner.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(reason).to_be_focused()

    runner.keyboard.press("Tab")
    reset = section.locator("[data-other]")
    expect(reset).to_be_focused()
    expect(reset).to_contain_text("Reset to default")
    runner.keyboard.press("Enter")
    expect(switch).to_have_attribute("data-stored", "unset")
    expect(section).to_contain_text("Default")
    expect(reset).to_contain_text("Set to Off")
    expect(reset).to_be_focused()

    row = dashboard.tool_row(runner, "local_git", STATUS)
    dashboard.override(runner, "local_git", STATUS, "Default").focus()
    runner.keyboard.press("ArrowRight")
    expect(row.locator("[name=was]")).to_have_value("true")
    expect(dashboard.override(runner, "local_git", STATUS, "On")).to_be_focused()
    runner.keyboard.press("ArrowRight")
    expect(row).to_contain_text("its override is off")
    expect(dashboard.override(runner, "local_git", STATUS, "Off")).to_be_focused()

    dashboard.section(runner, "research").locator(".section-head .why-link").press("Enter")
    panel.get_by_role("button", name="Turn toolkit research off").click()
    expect(dashboard.notice(runner)).to_contain_text("research is off for Runner runner.")
    expect(panel).to_be_hidden()
    expect(research).to_have_attribute("aria-checked", "false")


def test_fast_arrow_keys_store_the_last_choice(runner: Page) -> None:
    held = network.HeldResponses(runner, "POST")
    # The second key comes at once, or while the server handles the first.
    for sent, tool in enumerate((STATUS, "git__git_diff_unstaged")):
        row = dashboard.tool_row(runner, "local_git", tool)
        dashboard.override(runner, "local_git", tool, "Default").focus()
        runner.keyboard.press("ArrowRight")
        if sent:
            held = network.HeldResponses(runner, "POST")
            held.wait_for(1)
        runner.keyboard.press("ArrowRight")
        held.wait_for(1)
        held.stop_holding()
        held.deliver(0)
        expect(row.locator("[name=was]")).to_have_value("false")
        expect(dashboard.override(runner, "local_git", tool, "Off")).to_be_checked()
        expect(dashboard.override(runner, "local_git", tool, "Off")).to_be_focused()
        assert snapshots.find("runner", None).agent.overrides[tool] is False
    expect(dashboard.notice(runner)).not_to_contain_text("changed by another operator")


def test_the_focus_moves_on_when_a_button_removes_itself(runner: Page) -> None:
    dashboard.switch(runner, "local_git").press("Space")
    notice = dashboard.notice(runner)
    notice.get_by_role("button", name="Undo").press("Enter")
    expect(notice).to_contain_text("Undone")
    expect(notice.get_by_role("button", name="Redo")).to_be_focused()
    notice.get_by_role("button", name="Dismiss").press("Enter")
    expect(notice).to_be_empty()
    assert dashboard.focused_element(runner) != "nothing"

    dashboard.override(runner, "local_git", STATUS, "Off").check(force=True)
    reset = dashboard.section(runner, "local_git").get_by_role("button", name="Reset overrides")
    reset.press("Enter")
    expect(reset).to_have_count(0)
    assert dashboard.focused_element(runner) == "toolkit-local_git:overrides"


def test_shortcuts_walk_the_rows_and_can_be_turned_off(open_page: OpensPage) -> None:
    page = open_page("/agents/runner/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()

    first, second = page.locator(".section").nth(0), page.locator(".section").nth(1)
    page.keyboard.press("j")
    expect(first).to_be_focused()
    page.keyboard.press("j")
    expect(second).to_be_focused()
    page.keyboard.press("k")
    expect(first).to_be_focused()
    page.keyboard.press("x")
    expect(first.locator("[name=pick]")).to_be_checked()
    before = first.get_by_role("switch").get_attribute("aria-checked")
    page.keyboard.press("Space")
    expect(first.get_by_role("switch")).not_to_have_attribute("aria-checked", str(before))
    expect(first).to_be_focused()
    page.keyboard.press("e")
    expect(first.locator("li.tool").first).to_be_visible()
    page.keyboard.press("j")
    expect(first.locator("li.tool").first).to_be_focused()

    # In a field, they are only typed.
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type("/?jx")
    expect(page.get_by_role("searchbox")).to_have_value("/?jx")
    page.get_by_role("main").focus()
    page.keyboard.press("?")
    shortcuts = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(shortcuts).to_be_visible()
    shortcuts.get_by_role("checkbox").uncheck()
    page.keyboard.press("Escape")
    expect(shortcuts).to_be_hidden()
    page.reload()
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).not_to_be_focused()


def test_the_focus_is_visible_at_every_tab_stop(open_page: OpensPage) -> None:
    page = open_page("/agents/", theme="dark")
    for path in ("/agents/", "/agents/runner/?q=git_status", "/login/"):
        if path == "/login/":
            page.context.clear_cookies()
        page.goto(path)
        page.keyboard.press("Tab")
        stops: list[str] = []
        while (stop := dashboard.focused_element(page)) != "nothing" and len(stops) < 120:
            assert page.evaluate(FOCUS_IS_VISIBLE), f"{path}: the focus is not visible at {stop}"
            stops.append(stop)
            page.keyboard.press("Tab")
        assert 2 <= len(stops) < 120


def test_arrow_keys_read_the_days_of_a_chart_and_enter_opens_one(open_page: OpensPage) -> None:
    today = timezone.now()
    for days in (0, 1, 1):
        models.CallRecord.objects.create(
            agent="runner", tool=STATUS, at=today - dt.timedelta(days=days), outcome="ok", duration_ms=7
        )
    page = open_page("/calls/?period=7d")
    chart = page.get_by_role("group", name="3 calls in 7 days")
    expect(chart.locator("a:not([tabindex='-1'])")).to_have_count(1)
    chart.get_by_role("link").last.focus()
    page.keyboard.press("ArrowLeft")
    yesterday = chart.get_by_role("link").nth(5)
    expect(yesterday).to_be_focused()
    expect(page.locator(".chart-value").first).to_have_text(f"{yesterday.text_content()}".strip())
    expect(page.locator(".chart-value").first).to_contain_text(": 2 calls")
    page.keyboard.press("Home")
    expect(chart.get_by_role("link").first).to_be_focused()
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(page.locator("#matches")).to_have_text("2 calls, newest first")
