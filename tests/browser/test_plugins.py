"""Is a server added, told otherwise where it is, and a tool stopped and let go again, in each look?"""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser import looks, operating
from tests.browser.conftest import OpensPage
from tests.web import servers
from toolbelt.runtime import upstreams
from toolbelt.store import snapshots

pytestmark = pytest.mark.browser


@looks.in_each
def test_a_server_is_added_and_asked(
    open_page: OpensPage, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.TOOLBELT_WEB_VARIABLES = ["MCP_*"]
    asked: list[str] = []
    monkeypatch.setattr(upstreams, "refresh_soon", lambda names, record: asked.extend(names))
    page = open_page("/plugins/", expects="status of 422")
    page.get_by_role("link", name="Add a server").click()
    page.get_by_label("Name", exact=True).fill("files")
    page.get_by_label("URL").fill("https://169.254.169.254/")
    page.get_by_role("button", name="Add and ask").click()
    expect(page.get_by_text("a platform's own address")).to_be_visible()
    expect(page.get_by_label("Name", exact=True)).to_have_value("files")
    page.get_by_label("URL").fill("https://files.example/mcp")
    page.get_by_label("Headers").fill("Authorization: Bearer ${MCP_FILES}")
    page.get_by_role("button", name="Add and ask").click()
    expect(page.locator("#asking")).to_contain_text("Asking files…")
    assert asked == ["files"]


@looks.in_each
def test_a_server_is_reached_elsewhere(
    open_page: OpensPage, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.TOOLBELT_WEB_VARIABLES = ["MCP_*"]
    monkeypatch.setattr(upstreams, "refresh_soon", lambda names, record: None)
    servers.changed()
    page = open_page("/plugins/files/")
    page.get_by_text("Change the URL or the headers").click()
    page.get_by_label("URL").fill("https://elsewhere.example/mcp")
    page.locator("#facts").get_by_role("button", name="Save").click()
    expect(page.locator("#facts")).to_contain_text("https://elsewhere.example/mcp")


@looks.in_each
def test_a_tool_is_stopped_for_everyone_and_let_go_again(open_page: OpensPage) -> None:
    page = open_page("/tools/git__git_status/")
    page.get_by_role("button", name="Stop for everyone").click()
    expect(operating.notice(page)).to_contain_text("git__git_status is stopped for everyone.")
    expect(page.locator("#standing")).to_contain_text("for every agent")
    expect(page.locator("#tool-users")).to_have_text(re.compile("^0 "))
    assert snapshots.catalog().tools["git__git_status"].blocked
    page.get_by_role("button", name="Lift the stop").click()
    expect(operating.notice(page)).to_contain_text("git__git_status is no longer stopped.")
    assert not snapshots.catalog().tools["git__git_status"].blocked
