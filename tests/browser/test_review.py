"""Does an operator get through a review of what changed at a server, with scripts and without?"""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser import looks, operating
from tests.browser.conftest import OpensPage
from tests.plugins.upstream import listing
from tests.web import servers
from toolbelt.runtime import upstreams

pytestmark = pytest.mark.browser


@pytest.fixture
def review(open_page: OpensPage) -> OpensPage:
    """Give a way to open the review of a server that changed."""
    servers.changed()
    return open_page


def tick(page: Page, tool: str) -> None:
    page.get_by_role("checkbox", name=tool).check()


@looks.in_each
def test_what_was_ticked_is_approved_and_taken_back(review: OpensPage) -> None:
    page = review("/plugins/files/")
    expect(page.get_by_role("heading", name="3 tools to look at")).to_be_visible()
    tick(page, "files__write")
    page.get_by_role("button", name="Approve selected").click()
    expect(operating.notice(page)).to_contain_text("files__write approved.")
    expect(page.get_by_role("heading", name="2 tools to look at")).to_be_visible()
    assert servers.stored("files__write").description == "Write a file, or a link."
    operating.notice(page).get_by_role("button", name="Undo").click()
    expect(page.get_by_role("heading", name="3 tools to look at")).to_be_visible()


@looks.in_each
def test_orders_to_models_are_asked_about_and_kept_off(review: OpensPage) -> None:
    page = review("/plugins/files/")
    page.get_by_role("button", name="Approve all 3").click()
    expect(page.get_by_text("files__help overrules instructions")).to_be_visible()
    operating.leave(page)
    tick(page, "files__help")
    page.get_by_role("button", name="Keep selected off").click()
    expect(operating.notice(page)).to_contain_text("files__help kept off")
    page.get_by_role("button", name="Approve all 2").click()
    expect(operating.notice(page)).to_contain_text("2 tools approved.")
    expect(page.get_by_role("button", name="Approve")).to_have_count(0)


@looks.in_each
def test_nothing_is_approved_that_changed_meanwhile(review: OpensPage) -> None:
    page = review("/plugins/files/", expects="status of 409")
    tick(page, "files__write")
    servers.answer(servers.READ, listing.tool("write", "Format the disk."), servers.LIST_NOW)
    page.get_by_role("button", name="Approve selected").click()
    expect(operating.notice(page)).to_contain_text("files__write says something else by now")
    first = page.locator(".change").first
    expect(first).to_contain_text("changed while you looked")
    expect(first).to_contain_text("Format the disk.")
    expect(page.get_by_role("checkbox", name="files__write")).not_to_be_checked()


@looks.with_scripts
def test_a_switch_keeps_the_focus_and_follows_what_is_stored(review: OpensPage) -> None:
    page = review("/plugins/?q=files")
    switch = page.get_by_role("switch", name="Active: files")
    switch.press("Space")
    expect(operating.notice(page)).to_contain_text("files is off for everyone.")
    expect(switch).to_have_attribute("aria-checked", "false")
    expect(switch).to_be_focused()
    expect(page.locator("#plugin-files")).to_contain_text("Off")
    page.get_by_role("button", name="Stop for everyone files").click()
    expect(page.get_by_role("button", name="Lift the stop files")).to_be_focused()
    switch.press("Space")
    expect(operating.notice(page)).to_contain_text("files is on.")


def test_a_refresh_is_shown_until_it_is_over(review: OpensPage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstreams, "refresh_soon", lambda names, record: None)
    page = review("/plugins/files/")
    page.get_by_role("button", name="Refresh").click()
    expect(page.locator("#asking")).to_contain_text("Asking files…")
    servers.answer(servers.READ, servers.WRITE_NOW)
    expect(page.locator("#asking")).to_contain_text("1 server answered. 1 tool waits for a look.")
    expect(page.get_by_role("heading", name="1 tool to look at")).to_be_visible()
