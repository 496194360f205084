"""Tests of a page when another operator was quicker, the login has expired, or the server does not answer."""

from __future__ import annotations

import re
from typing import Any, NoReturn

import pytest
from django.contrib.sessions.models import Session
from playwright.sync_api import Page, expect

from tests.browser import looks, operating
from tests.browser.conftest import PASSWORD, OpensPage
from toolbelt.control.access import switches
from toolbelt.core import errors
from toolbelt.store import snapshots

pytestmark = pytest.mark.browser

CHANNELS = "slack__slack_list_channels"


@pytest.fixture
def two(open_page: OpensPage) -> tuple[Page, Page]:
    """Return two operators, each with a browser at the same agent."""
    refused = "status of 409"
    return (
        open_page("/agents/assistant/", expects=refused),
        open_page("/agents/assistant/", who="otto", expects=refused),
    )


@looks.with_scripts
def test_a_change_of_what_another_has_changed_is_refused_and_one_of_another_key_is_not(
    two: tuple[Page, Page],
) -> None:
    olive, otto = two
    operating.switch(olive, "tickets").click()
    expect(operating.switch(olive, "tickets")).to_have_attribute("aria-checked", "false")
    operating.section(otto, "tickets").get_by_role("button", name="Reset to default").click()
    expect(operating.notice(otto)).to_contain_text(
        "was changed by another operator: you saw on, it is off now"
    )
    expect(operating.switch(otto, "tickets")).to_have_attribute("aria-checked", "false")
    expect(operating.section(otto, "tickets")).to_contain_text("Off by olive")
    operating.switch(olive, "notion_docs").click()
    expect(operating.notice(olive)).to_contain_text("notion_docs is off for assistant.")
    switched = snapshots.find("assistant", None).agent.switches
    assert (switched["tickets"], switched["notion_docs"]) == (False, False)


@looks.with_scripts
def test_undoing_what_another_has_changed_since_is_shown_three_ways(two: tuple[Page, Page]) -> None:
    olive, otto = two
    operating.switch(olive, "tickets").click()
    expect(operating.notice(olive)).to_contain_text("tickets is off")
    otto.reload()
    operating.unfold(otto, "off")
    operating.section(otto, "tickets").get_by_role("button", name="Reset to default").click()
    expect(operating.notice(otto)).to_contain_text("tickets is reset to default")
    operating.notice(olive).get_by_role("button", name="Undo").click()
    question = olive.get_by_role("dialog", name="Turn on tickets for assistant?")
    expect(question).to_contain_text("Before the change")
    expect(question.get_by_role("row").nth(1)).to_contain_text("default")
    expect(operating.switch(olive, "tickets")).to_have_attribute("data-stored", "unset")
    question.get_by_role("button", name="Turn on").click()
    # Destructive tools come back with it: that is a question of its own.
    olive.get_by_role("dialog").get_by_text("Enables destructive tools").wait_for()
    olive.get_by_role("dialog").get_by_role("button", name="Turn on").click()
    expect(operating.switch(olive, "tickets")).to_have_attribute("aria-checked", "true")
    expect(olive.get_by_role("dialog")).to_have_count(0)


@looks.with_scripts
def test_a_session_that_is_over_leads_to_the_login_and_back(access: Page) -> None:
    Session.objects.all().delete()
    operating.switch(access, "tickets").click()
    expect(access.get_by_role("heading", name="Log in")).to_be_visible()
    assert snapshots.find("assistant", None).agent.switches["tickets"] is True
    access.get_by_label("User name").fill("olive")
    access.get_by_label("Password").fill(PASSWORD)
    access.get_by_role("button", name="Log in").click()
    expect(access.get_by_role("heading", name="assistant", exact=True)).to_be_visible()
    operating.switch(access, "tickets").click()
    expect(operating.notice(access)).to_contain_text("tickets is off")


@looks.with_scripts
def test_a_page_with_an_old_token_is_loaded_anew_and_says_so(access: Page) -> None:
    access.context.clear_cookies(name="csrftoken")
    operating.switch(access, "tickets").click()
    expect(operating.notice(access)).to_contain_text("the page was older than your login")
    operating.switch(access, "tickets").click()
    expect(operating.notice(access)).to_contain_text("tickets is off for assistant.")


def fail(*args: Any, **options: Any) -> NoReturn:
    raise RuntimeError("on purpose")


def full(*args: Any, **options: Any) -> NoReturn:
    raise errors.Unavailable("storage-full", "The disk of the database is full.", 60)


@looks.with_scripts
def test_what_the_server_cannot_do_is_told_with_its_reason_and_the_control_put_back(
    open_page: OpensPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = "status of (403|500|507)|Response Status Error Code (403|500|507)"
    page = open_page("/agents/assistant/?q=slack", expects=refused)
    switched = snapshots.find("assistant", None).agent.switches
    switch, request_id = operating.switch(page, "team_chat"), re.compile(r"^[0-9a-f-]{36}$")
    with monkeypatch.context() as broken:
        broken.setattr(switches, "_set", fail)
        operating.choice(page, "team_chat", CHANNELS, "Off").check(force=True)
        expect(operating.notice(page)).to_contain_text("Something went wrong on our side.")
        expect(operating.notice(page).locator("[data-request]")).to_have_text(request_id)
        expect(operating.choice(page, "team_chat", CHANNELS, "Default")).to_be_checked()
        expect(page.locator("#live")).to_contain_text("on our side")
        broken.setattr(switches, "_set", full)
        switch.click()
        unavailable = "Toolbelt is unavailable. The disk of the database is full."
        expect(operating.notice(page)).to_contain_text(unavailable)
        expect(operating.notice(page).locator("[data-request]").last).to_have_text(request_id)
        expect(switch).to_have_attribute("aria-checked", "true")
        operating.notice(page).get_by_role("button", name="Dismiss").click()
    operating.choice(page, "team_chat", CHANNELS, "Off").check(force=True)
    expect(operating.row(page, "team_chat", CHANNELS)).to_contain_text("its override is off")
    _take_the_right_from("olive")
    switch.click()
    not_allowed = "You do not have permission to do this. Nothing was changed."
    expect(operating.notice(page)).to_contain_text(not_allowed)
    expect(switch).to_have_attribute("aria-checked", "true")
    assert snapshots.find("assistant", None).agent.switches == switched


@looks.without_scripts
def test_all_that_is_told_where_no_script_runs(open_page: OpensPage, monkeypatch: pytest.MonkeyPatch) -> None:
    olive, otto = (
        open_page("/agents/assistant/?q=ticket", who=who, expects="status of (403|500)")
        for who in ("olive", "otto")
    )
    operating.switch(olive, "tickets").click()
    expect(operating.notice(olive)).to_contain_text("tickets is off for assistant.")
    operating.section(otto, "tickets").get_by_role("button", name="Reset to default").click()
    expect(operating.notice(otto)).to_contain_text(
        "was changed by another operator: you saw on, it is off now"
    )
    with monkeypatch.context() as broken:
        broken.setattr(switches, "_set", fail)
        operating.section(olive, "tickets").get_by_role("button", name="Reset to default").click()
        expect(olive.get_by_role("main")).to_contain_text(re.compile("[0-9a-f-]{36}"))
    olive.go_back()
    _take_the_right_from("olive")
    operating.section(olive, "tickets").get_by_role("button", name="Reset to default").click()
    expect(olive.get_by_text("403", exact=True)).to_be_visible()
    Session.objects.all().delete()
    operating.section(otto, "tickets").get_by_role("button", name="Reset to default").click()
    expect(otto.get_by_role("heading", name="Log in")).to_be_visible()
    assert snapshots.find("assistant", None).agent.switches["tickets"] is False


def _take_the_right_from(name: str) -> None:
    from django.contrib.auth import get_user_model

    get_user_model().objects.get(username=name).user_permissions.clear()
