"""Do others' changes arrive by themselves, never under somebody's hands, and is it said when they do not?"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.db import connections
from playwright.sync_api import Locator, Page, expect

from tests.browser import operating
from tests.browser.conftest import OpensPage, use
from toolbelt.control import actors, switches

pytestmark = pytest.mark.browser

OTTO = actors.Actor(name="otto", via="api")
CHANNELS = "slack__slack_list_channels"


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory, demo_file: Path) -> Iterator[tuple[str, Path]]:
    """Serve as production does, in a process of its own; give the address, and the file that is the database."""
    file = shutil.copyfile(demo_file, tmp_path_factory.mktemp("live") / "demo.sqlite3")
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "uvicorn",
        "toolbelt.asgi:application",
        "--port",
        str(port),
        "--no-access-log",
    ]
    environment = {**os.environ, "TOOLBELT_ENV": "test", "DATABASE_URL": f"sqlite:///{file}"}
    running = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    for _ in range(300):
        with contextlib.suppress(OSError), socket.create_connection(("localhost", port)):
            break
        time.sleep(0.1)
    yield f"http://localhost:{port}", file
    running.terminate()
    # Pages that are still open hold nothing up.
    running.wait(15)


@pytest.fixture
def streaming(
    demo: str, serving: tuple[str, Path], demo_file: Path, tmp_path: Path, django_db_blocker: Any
) -> Iterator[str]:
    """Give the server a demo that nobody has changed; give its address."""
    address, file = serving
    for log in ("-wal", "-shm"):
        Path(f"{file}{log}").unlink(missing_ok=True)
    shutil.copyfile(demo_file, tmp_path / "another").replace(file)
    with use(file, django_db_blocker):
        yield address


@pytest.fixture
def open_live(streaming: str, open_page: OpensPage) -> Callable[..., Page]:
    """Give a way to open a page of the server that streams, and to wait until it is live."""

    def open_(address: str, **options: str) -> Page:
        page = open_page(f"{streaming}{address}", base_url=streaming, **options)
        expect(state(page)).to_have_text("Live")
        return page

    return open_


def state(page: Page) -> Locator:
    return page.locator("#live-state")


def flip(toolkit: str, on: bool | None) -> None:
    switches.flip(OTTO, "assistant", toolkit, on, confirm=True)
    connections.close_all()


def override(tool: str, on: bool | None) -> None:
    switches.override(OTTO, "assistant", tool, on, confirm=True)
    connections.close_all()


def test_another_s_flip_appears_but_never_under_a_control_in_use(open_live: Callable[..., Page]) -> None:
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
    chosen = operating.choice(page, "team_chat", CHANNELS, "Inherit")
    chosen.focus()
    override(CHANNELS, False)
    expect(row).to_contain_text("Changed by otto: now Off")
    expect(chosen).to_be_checked()
    chosen.evaluate("(radio) => radio.blur()")
    expect(operating.choice(page, "team_chat", CHANNELS, "Off")).to_be_checked()
    expect(row).to_contain_text("its override is off")
    expect(row).not_to_contain_text("Changed by otto")


def test_what_is_done_under_a_mark_is_refused_and_then_shown(open_live: Callable[..., Page]) -> None:
    page = open_live("/agents/assistant/", expects="status of 409")
    switch = operating.switch(page, "tickets")
    switch.focus()
    flip("tickets", None)
    expect(operating.section(page, "tickets")).to_contain_text("Changed by otto: now Follows defaults")
    switch.press("Enter")
    expect(operating.notice(page)).to_contain_text("was changed by somebody else")
    expect(operating.section(page, "tickets")).not_to_contain_text("Changed by otto")
    expect(switch).to_have_attribute("data-stored", "unset")


def test_a_page_without_a_network_says_so_and_catches_up(open_live: Callable[..., Page]) -> None:
    page = open_live("/agents/assistant/", expects="ERR_INTERNET_DISCONNECTED|ERR_NETWORK")
    page.context.set_offline(True)
    expect(state(page)).to_have_text("Not live, reconnecting")
    expect(page.locator("#live")).to_have_text("Not live, reconnecting")
    flip("notion_docs", False)
    page.context.set_offline(False)
    expect(state(page)).to_have_text("Live")
    expect(operating.switch(page, "notion_docs")).to_have_attribute("aria-checked", "false")


def test_a_page_whose_login_is_over_says_so(open_live: Callable[..., Page]) -> None:
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
    expect(state(page)).to_have_text("Not live: every 5 s")
    flip("notion_docs", False)
    expect(operating.switch(page, "notion_docs")).to_have_attribute("aria-checked", "false")
