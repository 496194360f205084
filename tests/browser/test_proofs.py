"""Tests that previews say what their change would have done, once they are open, and that nothing moves or closes."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests import factories
from tests.browser import accessibility, dashboard
from tests.browser.conftest import OpensPage
from tests.factories import call as recorded
from toolbelt.store import snapshots

pytestmark = pytest.mark.browser
WORDS = "In the last 30 days this would have refused 3 calls of 1 agent in 3 sessions."


def record_calls() -> None:
    """Record calls that assistant made by its toolkit tickets."""
    tool = snapshots.catalog().toolkits["tickets"].members[0].tool
    facts = factories.facts(tool)
    for number in range(3):
        recorded(tool, agent="assistant", session=f"s{number}", days_ago=number, **facts)


def open_still(open_page: OpensPage, path: str) -> Page:
    """Open a page with reduced motion."""
    page = open_page("/static/favicon.svg")
    page.emulate_media(reduced_motion="reduce")
    page.goto(path)
    return page


def open_rule(page: Page) -> None:
    """Ask to create a rule that denies the calls."""
    page.locator("[name=key]").fill("no-tickets")
    page.locator("[name=toolkits]").fill("tickets")
    page.get_by_role("button", name="Create").click()
    page.get_by_role("dialog").wait_for()


def test_a_confirmation_says_what_its_change_would_have_done_with_its_table(open_page: OpensPage) -> None:
    record_calls()
    page = open_still(open_page, "/new/rule/")
    open_rule(page)
    proof = page.get_by_role("dialog").locator(".proof")

    expect(proof).to_contain_text("It would have refused 3 calls that ran in the last 7 days.")
    proof.get_by_text(WORDS).click()
    expect(proof.get_by_role("link", name="3 calls")).to_be_visible()
    assert accessibility.problems(page, "proof", "dialog[open]") == []
    # The form below the dialog keeps what was typed, and the dialog is still open.
    page.get_by_role("dialog").get_by_role("button", name="Back to editing").click()
    # The dialog repeats the form's values in hidden fields until it has closed.
    expect(page.get_by_role("textbox", name="Key", exact=True)).to_have_value("no-tickets")


def test_a_confirmation_that_was_cancelled_stays_closed_when_its_proof_arrives(open_page: OpensPage) -> None:
    record_calls()
    page = open_page("/new/rule/")
    waiting: list[Any] = []
    page.route("**/proof/", lambda route: waiting.append(route))
    open_rule(page)
    page.get_by_role("dialog").get_by_role("button", name="Back to editing").click()
    page.wait_for_function("document.querySelector('#dialog dialog') === null")
    for route in waiting:
        route.continue_()
    page.wait_for_load_state("networkidle")

    assert waiting
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_the_menu_of_a_switch_stays_open_and_a_notice_stays_while_its_proofs_arrive(
    open_page: OpensPage,
) -> None:
    record_calls()
    page = open_page("/agents/assistant/")
    dashboard.switch(page, "team_chat").click()
    expect(dashboard.notice(page)).to_contain_text("team_chat")
    menu = dashboard.open_actions(page, "tickets")

    expect(menu).to_contain_text("30 days: 3 refused")
    expect(menu).to_be_visible()
    expect(dashboard.notice(page)).to_contain_text("team_chat")


def test_a_block_is_proved_before_it_is_made(open_page: OpensPage) -> None:
    record_calls()
    page = open_still(open_page, "/toolkits/tickets/")
    page.get_by_role("button", name="What would this have done?").click()

    expect(page.locator("#block-proof")).to_contain_text(WORDS)
    page.locator("#block-proof summary").click()
    assert accessibility.problems(page, "proof", "#block-proof") == []
    assert snapshots.catalog().toolkits["tickets"].blocked is False
