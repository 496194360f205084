"""Tests of a page when another operator was faster, the login has expired, or the server fails."""

from __future__ import annotations

import re
from typing import Any, NoReturn

import pytest
from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from playwright.sync_api import Page, expect

from tests.browser import dashboard, devices
from tests.browser.conftest import PASSWORD, OpensPage
from toolbelt.control.access import switches
from toolbelt.core import errors
from toolbelt.store import snapshots

pytestmark = pytest.mark.browser

CHANNELS = "slack__slack_list_channels"


def test_a_stale_change_is_refused_and_a_stale_undo_is_compared_three_ways(open_page: OpensPage) -> None:
    olive, otto = (
        open_page("/agents/assistant/", user=user, expected_errors="status of 409")
        for user in ("olive", "otto")
    )
    dashboard.switch(olive, "tickets").click()
    expect(dashboard.switch(olive, "tickets")).to_have_attribute("aria-checked", "false")
    otto_reset = dashboard.section(otto, "tickets").get_by_role("button", name="Reset to default")
    otto_reset.click()
    expect(dashboard.notice(otto)).to_contain_text(
        "was changed by another operator: you saw on, it is off now"
    )
    expect(dashboard.switch(otto, "tickets")).to_have_attribute("aria-checked", "false")
    expect(dashboard.section(otto, "tickets")).to_contain_text("Off by olive")
    # What another operator changed elsewhere on the page is no conflict.
    dashboard.switch(otto, "notion_docs").click()
    expect(dashboard.notice(otto)).to_contain_text("notion_docs is off for Assistant assistant.")
    otto_reset.click()
    expect(dashboard.notice(otto)).to_contain_text("tickets is reset to default")

    dashboard.notice(olive).get_by_role("button", name="Undo").click()
    confirmation = olive.get_by_role("dialog", name="Turn on Tickets tickets for Assistant assistant?")
    expect(confirmation).to_contain_text("Before the change")
    expect(confirmation.get_by_role("row").nth(1)).to_contain_text("default")
    expect(dashboard.switch(olive, "tickets")).to_have_attribute("data-stored", "unset")
    confirmation.get_by_role("button", name="Turn on").click()
    # This enables destructive tools, which needs another confirmation.
    olive.get_by_role("dialog").get_by_text("Enables destructive tools").wait_for()
    olive.get_by_role("dialog").get_by_role("button", name="Turn on").click()
    expect(dashboard.switch(olive, "tickets")).to_have_attribute("aria-checked", "true")
    expect(olive.get_by_role("dialog")).to_have_count(0)
    switched = snapshots.find("assistant", None).agent.switches
    assert (switched["tickets"], switched["notion_docs"]) == (True, False)


@devices.on_phone
def test_an_old_csrf_token_reloads_the_page_and_an_expired_login_leads_back_to_it(access: Page) -> None:
    access.context.clear_cookies(name="csrftoken")
    dashboard.switch(access, "tickets").click()
    expect(dashboard.notice(access)).to_contain_text("the page was older than your login")

    Session.objects.all().delete()
    dashboard.switch(access, "tickets").click()
    expect(access.get_by_role("heading", name="Log in")).to_be_visible()
    assert snapshots.find("assistant", None).agent.switches["tickets"] is True
    access.get_by_label("User name").fill("olive")
    access.get_by_label("Password").fill(PASSWORD)
    access.get_by_role("button", name="Log in").click()
    expect(access.get_by_role("heading", name="Continue where you were?")).to_be_visible()
    assert snapshots.find("assistant", None).agent.switches["tickets"] is True
    access.get_by_role("button", name="Continue").click()
    expect(access.get_by_role("heading", name="Assistant", exact=True)).to_be_visible()
    expect(dashboard.notice(access)).to_contain_text("tickets is off for Assistant assistant.")


def fail(*args: Any, **options: Any) -> NoReturn:
    raise RuntimeError("on purpose")


def report_full_disk(*args: Any, **options: Any) -> NoReturn:
    raise errors.Unavailable("storage-full", "The disk of the database is full.", 60)


@devices.on_phone
def test_an_error_of_the_server_is_explained_and_the_control_goes_back(
    open_page: OpensPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = "status of (403|500|507)|Response Status Error Code (403|500|507)"
    page = open_page("/agents/assistant/?q=slack", expected_errors=expected)
    notice = dashboard.notice(page)
    stored = snapshots.find("assistant", None).agent.switches
    switch, request_id = dashboard.switch(page, "team_chat"), re.compile(r"^[0-9a-f-]{36}$")
    with monkeypatch.context() as patch:
        patch.setattr(switches, "_set", fail)
        dashboard.override(page, "team_chat", CHANNELS, "Off").check(force=True)
        expect(notice).to_contain_text("Something went wrong on our side.")
        expect(notice.locator("[data-request]")).to_have_text(request_id)
        expect(dashboard.override(page, "team_chat", CHANNELS, "Default")).to_be_checked()
        expect(page.locator("#live")).to_contain_text("on our side")
        patch.setattr(switches, "_set", report_full_disk)
        switch.click()
        expect(notice).to_contain_text("Toolbelt is unavailable. The disk of the database is full.")
        expect(notice.locator("[data-request]").last).to_have_text(request_id)
        expect(switch).to_have_attribute("aria-checked", "true")
        notice.get_by_role("button", name="Dismiss").click()
    dashboard.override(page, "team_chat", CHANNELS, "Off").check(force=True)
    expect(dashboard.tool_row(page, "team_chat", CHANNELS)).to_contain_text("its override is off")
    get_user_model().objects.get(username="olive").user_permissions.clear()
    switch.click()
    expect(notice).to_contain_text("You do not have permission to do this. Nothing was changed.")
    expect(switch).to_have_attribute("aria-checked", "true")
    assert snapshots.find("assistant", None).agent.switches == stored
