"""Tests that changes of other operators appear on open pages without disturbing input, or that a page is not live."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.db import connections
from playwright.sync_api import Locator, Page, expect

from tests.browser import dashboard, network, serving
from tests.browser.conftest import OpensPage, use_database
from tests.web import servers
from toolbelt.control import writing
from toolbelt.control.access import switches
from toolbelt.control.agents import agents
from toolbelt.control.catalog import blocking, entries
from toolbelt.runtime import calls

pytestmark = pytest.mark.browser

OTTO = writing.by("otto", via="api")
CHANNELS = "slack__slack_list_channels"
LIVE = re.compile(r"^\s*Live\b")
OFFLINE = "ERR_INTERNET_DISCONNECTED|ERR_NETWORK"


@pytest.fixture(scope="module")
def streaming_server(
    tmp_path_factory: pytest.TempPathFactory, demo_database: Path
) -> Iterator[tuple[str, Path]]:
    """Run a server that streams, as in production; yield its address and the file of its database."""
    file = shutil.copyfile(demo_database, tmp_path_factory.mktemp("live") / "demo.sqlite3")
    with serving.run(file) as address:
        yield address, file


@pytest.fixture
def streaming(
    demo: str,
    streaming_server: tuple[str, Path],
    demo_database: Path,
    tmp_path: Path,
    django_db_blocker: Any,
) -> Iterator[str]:
    """Yield the address of the streaming server, which serves a new copy of the demo."""
    address, file = streaming_server
    for suffix in ("-wal", "-shm"):
        Path(f"{file}{suffix}").unlink(missing_ok=True)
    shutil.copyfile(demo_database, tmp_path / "copy").replace(file)
    with use_database(file, django_db_blocker):
        yield address


@pytest.fixture
def open_live(streaming: str, open_page: OpensPage) -> OpensPage:
    """Return a function that opens a page of the streaming server and waits until it is live."""

    def open_(path: str, **options: Any) -> Page:
        page = open_page(path, base_url=streaming, **options)
        expect(live_state(page)).to_have_text(LIVE)
        return page

    return open_


def live_state(page: Page) -> Locator:
    return page.locator("#live-state")


def flip(toolkit: str, on: bool | None) -> None:
    switches.flip(OTTO.replace(confirm=True), "assistant", toolkit, on)
    connections.close_all()


def override(tool: str, on: bool | None) -> None:
    switches.override(OTTO.replace(confirm=True), "assistant", tool, on)
    connections.close_all()


def change(kind: str, name: str, **changes: Any) -> None:
    entries.change(OTTO.replace(confirm=True), kind, name, changes)
    connections.close_all()


def return_to_tab(page: Page) -> None:
    """Let the page believe that its tab was hidden and is visible again: then it updates at once."""
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


def test_a_flip_by_another_operator_appears_except_under_a_focused_control(open_live: OpensPage) -> None:
    page = open_live("/agents/assistant/", expected_errors="status of 409")
    agents_page = open_live("/agents/", user="rosa")
    flip("notion_docs", False)
    expect(dashboard.switch(page, "notion_docs")).to_have_attribute("aria-checked", "false")
    expect(dashboard.section(page, "notion_docs")).to_contain_text("Off by otto")
    expect(page.locator("#agent-facts")).to_contain_text("otto turned off Docs in Notion")
    row = agents_page.get_by_role("row").filter(
        has=agents_page.get_by_role("link", name="Assistant", exact=True)
    )
    expect(row).to_contain_text("otto turned off Docs in Notion")

    switch = dashboard.switch(page, "tickets")
    switch.focus()
    flip("tickets", False)
    mark = dashboard.section(page, "tickets").get_by_text("Changed by otto: now Off")
    expect(mark).to_be_visible()
    expect(page.locator("#live")).to_have_text("Tickets: Changed by otto: now Off")
    expect(switch).to_have_attribute("aria-checked", "true")
    expect(switch).to_be_focused()
    switch.evaluate("(button) => button.blur()")
    expect(switch).to_have_attribute("aria-checked", "false")
    expect(mark).to_have_count(0)

    # A flip of an outdated switch is refused.
    section, switch = dashboard.section(page, "code_sandbox"), dashboard.switch(page, "code_sandbox")
    switch.focus()
    flip("code_sandbox", None)
    expect(section).to_contain_text("Changed by otto: now")
    switch.press("Enter")
    expect(dashboard.notice(page)).to_contain_text("was changed by another operator")
    expect(section).not_to_contain_text("Changed by otto")
    expect(switch).to_have_attribute("data-stored", "unset")

    if not dashboard.tool_row(page, "team_chat", CHANNELS).count():
        dashboard.open_section(page, "team_chat")
    row = dashboard.tool_row(page, "team_chat", CHANNELS)
    chosen = dashboard.override(page, "team_chat", CHANNELS, "Default")
    chosen.focus()
    override(CHANNELS, False)
    expect(row).to_contain_text("Changed by otto: now Off")
    expect(chosen).to_be_checked()
    chosen.evaluate("(radio) => radio.blur()")
    expect(dashboard.override(page, "team_chat", CHANNELS, "Off")).to_be_checked()
    expect(row).to_contain_text("its override is off")
    expect(row).not_to_contain_text("Changed by otto")


def test_catalog_pages_follow_changes_and_keep_a_control_that_was_just_pressed(
    open_live: OpensPage,
) -> None:
    servers.changed("vault")

    def block(kind: blocking.Kind, name: str) -> None:
        blocking.set_blocked(OTTO, kind, name, True, was=False)

    changes: dict[str, tuple[Callable[[], Any], str]] = {
        "/loadouts/": (
            lambda: change("loadout", "secure-review", description="Reworded by otto."),
            "Reworded by otto.",
        ),
        "/loadouts/secure-review/": (lambda: change("loadout", "secure-review", description="New."), "New."),
        "/sub-apps/": (
            lambda: change("sub_app", "war-room", description="Reworded by otto."),
            "Reworded by otto.",
        ),
        "/sub-apps/war-room/": (lambda: change("sub_app", "war-room", description="New."), "New."),
        "/compare/?a=runner&b=kiosk": (
            lambda: change("agent", "kiosk", budget={"max_tools": 76}),
            "76 tools",
        ),
        "/tools/git__git_status/": (lambda: block("tool", "git__git_status"), "for all agents"),
        "/plugins/vault/": (lambda: block("plugin", "vault"), "Unblock"),
    }
    page = open_live("/")
    for path, (act, text) in changes.items():
        page.goto(path)
        expect(live_state(page)).to_have_text("Live")
        expect(page.locator("#main")).not_to_contain_text(text)
        act()
        connections.close_all()
        expect(page.locator("#main"), path).to_contain_text(text)

    page.goto("/plugins/slack/")
    expect(live_state(page)).to_have_text("Live")
    page.get_by_role("button", name="Block for everyone").click()
    expect(page.get_by_role("button", name="Unblock")).to_be_focused()
    change("plugin", "slack", description="Posts to the team.")
    expect(page.get_by_text("Posts to the team.")).to_be_visible()
    expect(page.get_by_role("heading", name="Block for everyone")).to_have_count(1)
    expect(page.get_by_text("This was removed.")).to_have_count(0)


def test_unsaved_input_is_kept_and_not_saved_over_another_change(open_live: OpensPage) -> None:
    page = open_live("/agents/assistant/settings/", expected_errors="status of 409")
    title, role = page.get_by_label("Title"), page.get_by_label("Role", exact=True)
    mark = page.locator(".meanwhile")
    role.fill("Mine")
    change("agent", "assistant", title="Otto's")
    expect(page.locator("#agent-facts")).to_contain_text("otto changed")
    expect(mark).to_contain_text("This was changed in the meantime. Your unsaved changes are kept.")
    expect(title).not_to_have_value("Otto's")
    page.get_by_role("button", name="Discard my changes and show the new values").click()
    expect(title).to_have_value("Otto's")
    expect(role).not_to_have_value("Mine")
    expect(mark).to_have_count(0)

    # Input that was typed and removed again is not unsaved: the page follows, and does not undo what the input hid.
    title.fill("Mine")
    title.fill("Otto's")
    title.blur()
    change("agent", "assistant", title="Otto's again")
    expect(title).to_have_value("Otto's again")

    role.fill("Mine")
    change("agent", "assistant", role="Otto's")
    expect(mark).to_be_visible()
    page.get_by_role("button", name="Save changes", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("Not saved")
    expect(role).to_have_value("Mine")
    expect(live_state(page)).to_have_text("Not live: unsaved changes")


def test_unsaved_row_order_and_ticks_survive_changes_by_another_operator(open_live: OpensPage) -> None:
    page = open_live("/toolkits/issues/edit/")
    mark = page.locator(".meanwhile")
    first = page.locator("#editor .rows").first.locator("code").first
    before = str(first.text_content())
    page.get_by_role("button", name=f"Move down: {before}").click()
    expect(first).not_to_have_text(before)
    change("toolkit", "issues", description="Reworded by otto.")
    expect(mark).to_be_visible()
    moved = str(first.text_content())
    page.get_by_role("button", name=f"Move down: {moved}").click()
    expect(first).to_have_text(before)
    expect(mark).to_be_visible()
    page.get_by_role("button", name="Discard my changes and show the new values").click()
    expect(page.get_by_label("Description").first).to_have_value("Reworded by otto.")

    page.goto("/compare/?a=runner&b=assistant")
    expect(live_state(page)).to_have_text("Live")
    tick = page.get_by_role("checkbox", name="notion_docs")
    tick.check()
    flip("tickets", False)
    expect(mark).to_be_visible()
    expect(tick).to_be_checked()

    page.goto("/toolkits/issues/")
    expect(live_state(page)).to_have_text("Live")
    page.get_by_role("checkbox", name="Select Runner").check(force=True)
    # The rows behind it move up.
    agents.archive(OTTO.replace(confirm=True), "assistant", True)
    connections.close_all()
    expect(page.locator("#agents")).not_to_contain_text("assistant")
    ticked = page.get_by_role("checkbox", checked=True)
    expect(ticked).to_have_count(1)
    expect(ticked).to_have_attribute("value", "runner")


def test_calls_and_sessions_appear_although_they_change_no_revision(open_live: OpensPage) -> None:
    page = open_live("/agents/assistant/sessions/")
    expect(live_state(page)).to_have_text("Live, sessions every 10 s")
    calls.run("assistant", "load_tools", {"toolkit": "devops"}, session="s1")
    connections.close_all()
    return_to_tab(page)
    expect(page.locator(".session")).to_contain_text("s1")

    page.goto("/calls/?view=log")
    expect(live_state(page)).to_have_text("Refreshes every 15 s")
    expect(page.locator(".call")).to_have_count(1)
    calls.run("assistant", "load_tools", {"toolkit": "devops"}, session="s2")
    connections.close_all()
    return_to_tab(page)
    expect(page.locator("#news")).to_contain_text("1 new call")
    expect(page.locator("#live")).to_contain_text("1 new call")
    expect(page.locator(".call")).to_have_count(1)
    page.get_by_role("link", name="Show", exact=True).click()
    expect(page.locator(".call")).to_have_count(2)
    expect(page.locator("#news")).to_have_text("")


def test_a_page_reports_a_lost_network_or_login_and_catches_up(open_live: OpensPage) -> None:
    page = open_live("/agents/assistant/", expected_errors=OFFLINE)
    page.context.set_offline(True)
    expect(live_state(page)).to_have_text("Reconnecting…")
    expect(page.locator("#live")).to_have_text("Reconnecting…")
    flip("notion_docs", False)
    page.context.set_offline(False)
    expect(live_state(page)).to_have_text("Live")
    expect(dashboard.switch(page, "notion_docs")).to_have_attribute("aria-checked", "false")

    Session.objects.all().delete()
    connections.close_all()
    page.context.set_offline(True)
    page.context.set_offline(False)
    expect(live_state(page)).to_have_text("Not live: log in again")


def test_a_page_polls_a_server_that_does_not_stream(
    open_page: OpensPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    page = open_page("/agents/assistant/")
    expect(live_state(page)).to_have_text("Refreshes every 5 s")
    network.shorten_timers(page)
    # Requests now, and from then on by a timer.
    with page.expect_response("**/live/**"):
        page.evaluate("dispatchEvent(new Event('online'))")
    flip("notion_docs", False)
    expect(dashboard.switch(page, "notion_docs")).to_have_attribute("aria-checked", "false")
