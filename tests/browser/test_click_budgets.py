"""The commonest jobs of an operator, each within its number of clicks from the Overview."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser import clicks, operating
from tests.browser.conftest import OpensPage
from toolbelt.store import snapshots

pytestmark = pytest.mark.browser


def test_a_toolkit_is_off_for_one_agent_after_two_clicks(open_page: OpensPage) -> None:
    job = clicks.Job(open_page())
    job.open_agent("assistant")
    operating.switch(job.page, "tickets").click()
    expect(operating.notice(job.page)).to_contain_text("tickets is off for assistant.")
    assert snapshots.find("assistant", None).agent.switches["tickets"] is False
    assert job.presses == 2
