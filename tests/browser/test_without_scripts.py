"""Tests that the dashboard works without JavaScript."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from playwright.sync_api import expect

from tests.browser import dashboard, devices
from tests.browser.conftest import OpensPage
from tests.browser.test_conflicts_and_errors import fail
from toolbelt.control.access import switches
from toolbelt.store import snapshots

pytestmark = pytest.mark.browser


@devices.without_scripts
def test_changes_conflicts_errors_and_toolkits_work_without_javascript(
    open_page: OpensPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    olive, otto = (
        open_page("/agents/assistant/?q=ticket", user=user, expected_errors="status of (403|500)")
        for user in ("olive", "otto")
    )
    dashboard.switch(olive, "tickets").click()
    expect(dashboard.notice(olive)).to_contain_text("tickets is off for Assistant assistant.")
    dashboard.section(otto, "tickets").get_by_role("button", name="Reset to default").click()
    expect(dashboard.notice(otto)).to_contain_text(
        "was changed by another operator: you saw on, it is off now"
    )

    otto.goto("/toolkits/local_git/")
    runner = otto.locator("li.agent-switch").filter(has=otto.get_by_role("link", name="Runner", exact=True))
    runner.get_by_role("switch").click()
    expect(dashboard.notice(otto)).to_contain_text("local_git is off for Runner runner.")
    expect(otto).to_have_url("/toolkits/local_git/")
    otto.get_by_role("button", name="Block for everyone").click()
    expect(dashboard.notice(otto)).to_contain_text("local_git is blocked for everyone.")
    dashboard.notice(otto).get_by_role("button", name="Undo").click()
    expect(otto.get_by_role("button", name="Block for everyone")).to_be_visible()
    otto.get_by_label("Try a message").fill("commit this")
    otto.get_by_role("button", name="Try", exact=True).click()
    expect(otto.get_by_text("matches first")).to_be_visible()

    # Further errors lead to pages of their own.
    reset = dashboard.section(olive, "tickets").get_by_role("button", name="Reset to default")
    with monkeypatch.context() as patch:
        patch.setattr(switches, "_set", fail)
        reset.click()
        expect(olive.get_by_role("main")).to_contain_text(re.compile("[0-9a-f-]{36}"))
    olive.go_back()
    get_user_model().objects.get(username="olive").user_permissions.clear()
    reset.click()
    expect(olive.get_by_text("403", exact=True)).to_be_visible()
    Session.objects.all().delete()
    otto.get_by_role("button", name="Block for everyone").click()
    expect(otto.get_by_role("heading", name="Log in")).to_be_visible()
    assert snapshots.find("assistant", None).agent.switches["tickets"] is False
