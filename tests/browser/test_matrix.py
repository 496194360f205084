"""Is a switch of the matrix flipped in each look: in the grid on a desk, in one agent's list on a phone?"""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser import looks, operating
from tests.browser.conftest import OpensPage
from toolbelt.store import snapshots

pytestmark = pytest.mark.browser


@looks.in_each
def test_a_cell_is_flipped_cleared_and_asked_about(open_page: OpensPage, look: looks.Look) -> None:
    page = open_page("/matrix/")
    page.get_by_role("searchbox").fill("git")
    operating.save(page.locator("#filter"), "Apply")
    expect(page.locator("#matches")).to_contain_text("1 toolkit,")
    if look.is_phone:
        page.get_by_role("link", name="runner").click()
        expect(page.get_by_label("Agent")).to_have_value("runner")
    switch = page.get_by_role("switch", name="Local git for runner")
    state = page.locator("td").filter(has=switch)
    switch.click()
    expect(operating.notice(page)).to_contain_text("local_git is off for runner.")
    expect(switch).to_have_attribute("aria-checked", "false")
    expect(state).to_contain_text("toolkit local_git is off")
    state.locator("[data-other]").click()
    expect(operating.notice(page)).to_contain_text("local_git follows the defaults for runner.")
    expect(switch).to_have_attribute("data-stored", "unset")
    assert "local_git" not in snapshots.find("runner", None).agent.switches
