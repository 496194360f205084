"""Tests that others' changes appear without a reload, never disturb input, and that the page says when they do not."""

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

from tests.browser import operating, serving
from tests.browser.conftest import OpensPage, use
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


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, demo_file: Path) -> Iterator[tuple[str, Path]]:
    """Serve as production does; give the address, and the file that is the database."""
    file = shutil.copyfile(demo_file, tmp_path_factory.mktemp("live") / "demo.sqlite3")
    with serving.run(file) as address:
        yield address, file


@pytest.fixture
def streaming(
    demo: str, served: tuple[str, Path], demo_file: Path, tmp_path: Path, django_db_blocker: Any
) -> Iterator[str]:
    """Serve an unchanged demo; yield its address."""
    address, file = served
    for log in ("-wal", "-shm"):
        Path(f"{file}{log}").unlink(missing_ok=True)
    shutil.copyfile(demo_file, tmp_path / "another").replace(file)
    with use(file, django_db_blocker):
        yield address


@pytest.fixture
def open_live(streaming: str, open_page: OpensPage) -> OpensPage:
    """Return a way to open a page of the server that streams, and to wait until it is live."""

    def open_(address: str, **options: Any) -> Page:
        page = open_page(address, at=streaming, **options)
        expect(state(page)).to_have_text(LIVE)
        return page

    return open_


def state(page: Page) -> Locator:
    return page.locator("#live-state")


def flip(toolkit: str, on: bool | None) -> None:
    switches.flip(OTTO.replace(confirm=True), "assistant", toolkit, on)
    connections.close_all()


def override(tool: str, on: bool | None) -> None:
    switches.override(OTTO.replace(confirm=True), "assistant", tool, on)
    connections.close_all()


def test_another_s_flip_appears_but_never_under_a_control_in_use(open_live: OpensPage) -> None:
    page, listing = open_live("/agents/assistant/"), open_live("/agents/", who="rosa")
    flip("notion_docs", False)
    expect(operating.switch(page, "notion_docs")).to_have_attribute("aria-checked", "false")
    expect(operating.section(page, "notion_docs")).to_contain_text("Off by otto")
    expect(page.locator("#agent-facts")).to_contain_text("otto turned off notion_docs")
    line = listing.get_by_role("row").filter(has=listing.get_by_role("link", name="assistant", exact=True))
    expect(line).to_contain_text("otto turned off notion_docs")

    switch = operating.switch(page, "tickets")
    switch.focus()
    flip("tickets", False)
    mark = operating.section(page, "tickets").get_by_text("Changed by otto: now Off")
    expect(mark).to_be_visible()
    expect(page.locator("#live")).to_have_text("Tickets: Changed by otto: now Off")
    expect(switch).to_have_attribute("aria-checked", "true")
    expect(switch).to_be_focused()
    switch.evaluate("(button) => button.blur()")
    expect(switch).to_have_attribute("aria-checked", "false")
    expect(mark).to_have_count(0)

    if not operating.row(page, "team_chat", CHANNELS).count():
        operating.opened(page, "team_chat")
    row = operating.row(page, "team_chat", CHANNELS)
    chosen = operating.choice(page, "team_chat", CHANNELS, "Default")
    chosen.focus()
    override(CHANNELS, False)
    expect(row).to_contain_text("Changed by otto: now Off")
    expect(chosen).to_be_checked()
    chosen.evaluate("(radio) => radio.blur()")
    expect(operating.choice(page, "team_chat", CHANNELS, "Off")).to_be_checked()
    expect(row).to_contain_text("its override is off")
    expect(row).not_to_contain_text("Changed by otto")


def test_what_is_done_under_a_mark_is_refused_and_then_shown(open_live: OpensPage) -> None:
    page = open_live("/agents/assistant/", expects="status of 409")
    switch = operating.switch(page, "tickets")
    switch.focus()
    flip("tickets", None)
    expect(operating.section(page, "tickets")).to_contain_text("Changed by otto: now Default")
    switch.press("Enter")
    expect(operating.notice(page)).to_contain_text("was changed by another operator")
    expect(operating.section(page, "tickets")).not_to_contain_text("Changed by otto")
    expect(switch).to_have_attribute("data-stored", "unset")


def change(kind: str, name: str, **changes: Any) -> None:
    entries.change(OTTO.replace(confirm=True), kind, name, changes)
    connections.close_all()


def test_pages_of_what_is_shared_follow(open_live: OpensPage) -> None:
    servers.changed("vault")

    def stop(kind: blocking.Kind, name: str) -> None:
        blocking.set_blocked(OTTO, kind, name, True, was=False)

    said = "Said by otto."
    changes: dict[str, tuple[Callable[[], Any], str]] = {
        "/loadouts/": (lambda: change("loadout", "secure-review", description=said), said),
        "/loadouts/secure-review/": (lambda: change("loadout", "secure-review", description="New."), "New."),
        "/sub-apps/": (lambda: change("sub_app", "war-room", description=said), said),
        "/sub-apps/war-room/": (lambda: change("sub_app", "war-room", description="New."), "New."),
        "/compare/?a=runner&b=kiosk": (
            lambda: change("agent", "kiosk", budget={"max_tools": 76}),
            "76 tools",
        ),
        "/tools/git__git_status/": (lambda: stop("tool", "git__git_status"), "for all agents"),
        "/plugins/vault/": (lambda: stop("plugin", "vault"), "Unblock"),
    }
    page = open_live("/")
    for address, (act, text) in changes.items():
        page.goto(address)
        expect(state(page)).to_have_text("Live")
        expect(page.locator("#main")).not_to_contain_text(text)
        act()
        connections.close_all()
        expect(page.locator("#main"), address).to_contain_text(text)


def test_a_control_that_was_pressed_stays_when_what_it_changed_arrives(open_live: OpensPage) -> None:
    page = open_live("/plugins/slack/")
    page.get_by_role("button", name="Block for everyone").click()
    expect(page.get_by_role("button", name="Unblock")).to_be_focused()

    change("plugin", "slack", description="Posts to the team.")

    expect(page.get_by_text("Posts to the team.")).to_be_visible()
    expect(page.get_by_role("heading", name="Emergency stop")).to_have_count(1)
    expect(page.get_by_text("This was removed.")).to_have_count(0)


def test_what_is_not_saved_is_never_overwritten(open_live: OpensPage) -> None:
    page = open_live("/agents/assistant/settings/", expects="status of 409")
    title, role = page.get_by_label("Title"), page.get_by_label("Role", exact=True)
    mark = page.locator(".meanwhile")
    role.fill("Mine")
    change("agent", "assistant", title="Otto's")
    expect(page.locator("#agent-facts")).to_contain_text("otto changed")
    expect(mark).to_contain_text("Another operator changed this. Your unsaved changes are kept.")
    expect(title).not_to_have_value("Otto's")
    page.get_by_role("button", name="Discard my changes and show theirs").click()
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
    expect(state(page)).to_have_text("Not live: unsaved changes")


def test_rows_that_an_editor_moved_are_kept_and_ticks_stay_where_they_are(open_live: OpensPage) -> None:
    page = open_live("/toolkits/issues/edit/")
    mark = page.locator(".meanwhile")
    first = page.locator("#editor .rows").first.locator("code").first
    before = str(first.text_content())
    page.get_by_role("button", name=f"Move down: {before}").click()
    expect(first).not_to_have_text(before)
    change("toolkit", "issues", description="Said by otto.")
    expect(mark).to_be_visible()
    moved = str(first.text_content())
    page.get_by_role("button", name=f"Move down: {moved}").click()
    expect(first).to_have_text(before)
    expect(mark).to_be_visible()
    page.get_by_role("button", name="Discard my changes and show theirs").click()
    expect(page.get_by_label("Description").first).to_have_value("Said by otto.")

    page.goto("/compare/?a=runner&b=assistant")
    expect(state(page)).to_have_text("Live")
    tick = page.get_by_role("checkbox", name="notion_docs")
    tick.check()
    flip("tickets", False)
    expect(mark).to_be_visible()
    expect(tick).to_be_checked()

    page.goto("/toolkits/issues/")
    expect(state(page)).to_have_text("Live")
    page.get_by_role("checkbox", name="Select runner").check(force=True)
    # Those behind it move up.
    agents.archive(OTTO.replace(confirm=True), "assistant", True)
    connections.close_all()
    expect(page.locator("#agents")).not_to_contain_text("assistant")
    ticked = page.get_by_role("checkbox", checked=True)
    expect(ticked).to_have_count(1)
    expect(ticked).to_have_attribute("value", "runner")


def test_calls_are_counted_and_sessions_appear_without_a_revision(open_live: OpensPage) -> None:
    page = open_live("/agents/assistant/sessions/")
    expect(state(page)).to_have_text("Live, sessions every 10 s")
    calls.run("assistant", "load_tools", {"toolkit": "devops"}, session="s1")
    connections.close_all()
    come_back(page)
    expect(page.locator(".session")).to_contain_text("s1")

    page.goto("/calls/?view=log")
    expect(state(page)).to_have_text("Refreshes every 15 s")
    expect(page.locator(".call")).to_have_count(1)
    calls.run("assistant", "load_tools", {"toolkit": "devops"}, session="s2")
    connections.close_all()
    come_back(page)
    expect(page.locator("#news")).to_contain_text("1 new call")
    expect(page.locator("#live")).to_contain_text("1 new call")
    expect(page.locator(".call")).to_have_count(1)
    page.get_by_role("link", name="Show", exact=True).click()
    expect(page.locator(".call")).to_have_count(2)
    expect(page.locator("#news")).to_have_text("")


def come_back(page: Page) -> None:
    """Look at the page again after having looked elsewhere: then it does not wait for its time."""
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


def test_a_page_without_a_network_says_so_and_catches_up(open_live: OpensPage) -> None:
    page = open_live("/agents/assistant/", expects="ERR_INTERNET_DISCONNECTED|ERR_NETWORK")
    page.context.set_offline(True)
    expect(state(page)).to_have_text("Reconnecting…")
    expect(page.locator("#live")).to_have_text("Reconnecting…")
    flip("notion_docs", False)
    page.context.set_offline(False)
    expect(state(page)).to_have_text("Live")
    expect(operating.switch(page, "notion_docs")).to_have_attribute("aria-checked", "false")


def test_a_page_whose_login_is_over_says_so(open_live: OpensPage) -> None:
    page = open_live("/agents/assistant/", expects="ERR_INTERNET_DISCONNECTED|ERR_NETWORK")
    Session.objects.all().delete()
    connections.close_all()
    page.context.set_offline(True)
    page.context.set_offline(False)
    expect(state(page)).to_have_text("Not live: log in again")


def test_a_server_that_does_not_stream_is_asked_now_and_then(
    open_page: OpensPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    page = open_page("/agents/assistant/")
    expect(state(page)).to_have_text("Refreshes every 5 s")
    flip("notion_docs", False)
    expect(operating.switch(page, "notion_docs")).to_have_attribute("aria-checked", "false")
