"""What does an operator do who comes in: look, undo, turn off what nobody calls?"""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser import looks, operating
from tests.browser.conftest import OpensPage
from toolbelt import models
from toolbelt.control import actors, switches
from toolbelt.store import snapshots

pytestmark = pytest.mark.browser


@looks.in_each
def test_a_change_of_today_is_seen_and_undone_on_the_first_page(open_page: OpensPage) -> None:
    switches.flip(actors.Actor(name="otto", via="api"), "assistant", "tickets", False, reason="Too many.")
    page = open_page("/")
    expect(page.get_by_role("heading", name="Needs an eye")).to_be_visible()
    today = page.get_by_role("region", name="Changed today")
    expect(today).to_contain_text("otto turned off tickets")
    today.get_by_role("button", name="Undo").click()
    expect(operating.notice(page)).to_contain_text("Undone: otto turned off tickets.")
    expect(today).to_contain_text("undone by olive")
    assert snapshots.find("assistant", None).agent.switches["tickets"] is True


@looks.in_each
def test_what_nobody_calls_is_turned_off_and_back_on(open_page: OpensPage) -> None:
    models.CallRecord.objects.create(agent="kiosk", tool="wikipedia", outcome="ok", duration_ms=40)
    page = open_page("/calls/?agent=kiosk")
    page.get_by_role("button", name=re.compile("time__convert_time off for kiosk")).click()
    expect(operating.notice(page)).to_contain_text("time__convert_time is off for kiosk.")
    expect(page).to_have_url("http://" + page.url.split("/")[2] + "/calls/?agent=kiosk#unused-title")
    assert snapshots.find("kiosk", None).agent.overrides["time__convert_time"] is False
    operating.notice(page).get_by_role("button", name="Undo").click()
    expect(operating.notice(page)).to_contain_text("Undone")
    assert "time__convert_time" not in snapshots.find("kiosk", None).agent.overrides
