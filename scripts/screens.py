"""Take screenshots of the demo, as operators see it, on its own database.

Screenshots in docs/screens, which the documentation shows, are replaced; all others are written to build/screens, which
git ignores. To show another one, copy it from there to docs/screens.

Requires Chromium (CHROMIUM is its path, if it has another name). Uses pngquant, if installed, to reduce the files. Run
this again when a page looks different. Arguments are the names of scenes, to take only these.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import django
import uvicorn
from django.core.management import call_command
from django.db import connections
from playwright.sync_api import Browser, Page, StorageState, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
SHOWN = ROOT / "docs" / "screens"
OTHERS = ROOT / "build" / "screens"
PASSWORD = secrets.token_urlsafe(12)
# Name, width, height, color scheme. Wide enough for the panel beside the page.
LOOKS = (
    ("light", 1440, 900, "light"),
    ("dark", 1440, 900, "dark"),
    ("phone", 390, 844, "light"),
    ("phone-dark", 390, 844, "dark"),
)
# The maximum colors of a file. Few pages have more, and the files stay small.
COLORS = "128"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


def main() -> None:
    names = (os.environ.get("CHROMIUM", ""), "chromium-headless-shell", "chromium", "google-chrome")
    chromium = next(filter(None, map(shutil.which, filter(None, names))), None)
    if chromium is None:
        sys.exit("Chromium is not installed: install it (on Debian: apt-get install chromium).")
    selected = {name: scene for name, scene in SCENES.items() if name in (sys.argv[1:] or SCENES)}
    OTHERS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        served, filled = Path(folder, "served.sqlite3"), Path(folder, "filled.sqlite3")
        with _demo(served) as address, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
            olive = _log_in(browser, address)
            _copy(served, filled)
            for look, width, height, scheme in LOOKS:
                _copy(filled, served)
                for name, (path, prepare) in selected.items():
                    context = browser.new_context(
                        base_url=address,
                        storage_state=None if name == "login" else olive,
                        viewport={"width": width, "height": height},
                        color_scheme="dark" if scheme == "dark" else "light",
                        is_mobile=width < 600,
                        has_touch=width < 600,
                    )
                    page = context.new_page()
                    page.goto(path)
                    prepare(page)
                    page.wait_for_timeout(300)  # until animations have ended
                    file = f"{name}-{look}.png"
                    picture = (SHOWN if (SHOWN / file).exists() else OTHERS) / file
                    page.screenshot(path=picture)
                    context.close()
                    _make_small(picture)
                    print(f"{picture.relative_to(ROOT)}  {picture.stat().st_size // 1024} KB")
            browser.close()


def nothing(page: Page) -> None:
    """Leave the page as it is."""


def show(part: str) -> Callable[[Page], None]:
    """Scroll to a part of the page."""
    return lambda page: page.locator(part).evaluate("(element) => element.scrollIntoView()")


def open_menu(page: Page) -> None:
    """Open a switch's menu, and the preview of its effect."""
    page.locator("[data-section='toolkit-research'] .section-head .acts-opener").click()
    page.locator(".acts-body:popover-open .acts-effects").wait_for()


def flip(page: Page) -> None:
    """Turn a toolkit off, so that the page shows a notice with its effect."""
    section = page.locator("[data-section='toolkit-research']")
    reset = section.get_by_role("button", name="Reset to default")
    if reset.is_visible():  # the previous look has turned it off
        reset.click()
    section.get_by_role("switch").click()
    page.locator("#toast").get_by_text("research is off").wait_for()
    page.evaluate("scrollTo(0, 0)")


def ask(page: Page) -> None:
    """Start a far-reaching change, which requires confirmation."""
    page.locator("#group-off > summary").click()
    page.locator("[data-section='toolkit-issues']").get_by_role("switch").click()
    page.get_by_role("dialog").wait_for()


def propose(page: Page) -> None:
    """Start saving a loadout, so that the page shows the affected agents."""
    page.get_by_label("security", exact=True).dispatch_event("click")
    page.get_by_label("Disabled").fill("desktop_commander\nchrome_devtools\nnotion\nshell\nfile\ngit")
    page.get_by_role("button", name="Save changes", exact=True).click()
    page.get_by_role("dialog").get_by_role("heading", name="Effect on agents").wait_for()


def copy(page: Page) -> None:
    """Start copying two switches."""
    for key in ("issues", "local_git"):
        page.locator(f"[name=row][value='switch:{key}']").check()
    page.get_by_role("button", name="Copy selected").click()
    page.get_by_role("dialog").wait_for()


def check_belt(page: Page) -> None:
    """Check a small belt."""
    page.locator("#belt-text").fill(
        "toolkits:\n- key: shipping\n  members: [git__git_status, git__git_commit]\n"
        "loadouts:\n- {name: release-train, plugins: [git, time], discoverable: [circleci]}\n"
        "agents:\n- {key: newcomer, kind: task, tools_config: {shipping: true, terminal: false}}\n"
    )
    page.get_by_role("button", name="Preview import").click()
    page.locator("#belt-checked").wait_for()


def import_servers(page: Page) -> None:
    """Preview a client's file."""
    page.locator("#import-text").fill(
        '{"mcpServers": {"issues": {"url": "https://issues.example/mcp", "headers": {"X-Team": "core"}},'
        ' "wiki": {"url": "https://wiki.example/mcp", "headers": {"Authorization": "Bearer 0123456789abcdef0123"}},'
        ' "files": {"command": "npx", "args": ["-y", "files"]}}}'
    )
    page.get_by_role("button", name="Preview import").click()
    page.get_by_role("button", name="Add servers").wait_for()


def issue(page: Page) -> None:
    """Create a token, which the page shows only once."""
    page.get_by_label("Agent", exact=True).select_option("tech-writer")
    page.get_by_label("Name", exact=True).fill("Nightly build of the handbook")
    page.get_by_role("button", name="Issue").click()
    page.get_by_text("not shown again").wait_for()
    # Hide the token, although its database no longer exists.
    page.locator("#token-text code").evaluate("(code) => { code.textContent = 'tb_' + 'x'.repeat(44) }")


def connect(page: Page) -> None:
    """Create a token for Claude Code, whose command then contains it."""
    page.get_by_role("button", name="Issue token and show command").click()
    page.get_by_text("not shown again").wait_for()
    page.locator("#connect code").evaluate_all(
        "(codes) => { for (const code of codes)"
        " code.textContent = code.textContent.replace(/tb_\\w{20,}/g, 'tb_' + 'x'.repeat(44)) }"
    )


SCENES: dict[str, tuple[str, Callable[[Page], None]]] = {
    "login": ("/login/", nothing),
    "home": ("/", nothing),
    "help": ("/help/", nothing),
    "status": ("/status/", nothing),
    "account": ("/account/", nothing),
    "nothing-here": ("/nothing/", nothing),
    "agents": ("/agents/", nothing),
    "audit": ("/audit/", nothing),
    "access-menu": ("/agents/runner/", open_menu),
    "bulk": ("/agents/runner/bulk/?q=git&set=tools-false", nothing),
    "plugins": ("/plugins/?show=waiting", nothing),
    "review": ("/review/", nothing),
    "approvals": ("/review/approvals/", nothing),
    "plugin": ("/plugins/project_files/", nothing),
    "plugin-add": ("/plugins/add/", nothing),
    "plugin-import": ("/plugins/add/file/", import_servers),
    "search": ("/search/?q=slack", nothing),
    "compare": ("/compare/?a=runner&b=release-captain", nothing),
    "compare-copy": ("/compare/?a=runner&b=release-captain", copy),
    "preview-past": ("/agents/runner/preview/?at=1", show("#preview")),
    "belt": ("/belt/", nothing),
    "belt-checked": ("/belt/", check_belt),
    "matrix": ("/matrix/", nothing),
    "toolkits": ("/toolkits/", nothing),
    "toolkit": ("/toolkits/issues/?message=please+file+a+bug", nothing),
    "toolkit-preview": ("/toolkits/issues/?message=please+file+a+bug", show("#preview-result")),
    "toolkit-edit": ("/toolkits/issues/edit/?message=please+file+a+bug", nothing),
    "loadouts": ("/loadouts/", nothing),
    "loadout": ("/loadouts/secure-review/", nothing),
    "loadout-edit": ("/loadouts/secure-review/edit/", nothing),
    "loadout-save": ("/loadouts/secure-review/edit/", propose),
    "sub-apps": ("/sub-apps/", nothing),
    "sub-app": ("/sub-apps/war-room/", nothing),
    "sub-app-edit": ("/sub-apps/war-room/edit/", nothing),
    "tools": ("/tools/", nothing),
    "tool": ("/tools/github__issue_write/", nothing),
    "calls": ("/calls/", nothing),
    "call": ("/calls/1/", nothing),
    "calls-log": ("/calls/?view=log", nothing),
    "calls-unused": ("/calls/?view=unused&agent=assistant", nothing),
    "access-confirm": ("/agents/assistant/", ask),
    "access": ("/agents/assistant/?open=toolkit-research", flip),
    "preview": ("/agents/assistant/preview/?message=find+recent+papers+on+tool+use", nothing),
    "preview-json": ("/agents/support-desk/preview/?view=json&format=anthropic", nothing),
    "preview-why": ("/agents/release-captain/preview/?view=why&tool=github__merge_pull_request", nothing),
    "sessions": ("/agents/assistant/sessions/", nothing),
    "history": ("/agents/release-captain/history/", nothing),
    "agent-new": ("/new/agent/?from=agent:runner", nothing),
    "connect": ("/agents/assistant/connect/", nothing),
    "connect-token": ("/agents/assistant/connect/", connect),
    "settings": ("/agents/generalist/settings/", nothing),
    "people": ("/people/", nothing),
    "tokens": ("/tokens/", issue),
}


@contextlib.contextmanager
def _demo(file: Path) -> Iterator[str]:
    """Fill a database and serve it. Yield the address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    os.environ.update(
        DJANGO_SETTINGS_MODULE="toolbelt.settings",
        TOOLBELT_ENV="demo",
        TOOLBELT_LOG_LEVEL="ERROR",
        SECRET_KEY=secrets.token_urlsafe(50),
        ALLOWED_HOSTS="127.0.0.1",
        DATABASE_URL=f"sqlite:///{file}",
        TOOLBELT_PLUGINS_FILE="fixtures/demo/plugins.yaml",
        DEMO_REPOSITORY=str(file.parent / "demo-repository"),
    )
    django.setup()
    from toolbelt.management import demo_repository

    demo_repository.create(file.parent / "demo-repository")
    call_command("migrate", verbosity=0)
    call_command("loaddata", "demo", verbosity=0)
    call_command("demo_activity", verbosity=0)
    _create_activity()
    connections.close_all()
    config = uvicorn.Config("toolbelt.asgi:application", port=port, log_level="error", lifespan="on")
    server = uvicorn.Server(config)
    serving = threading.Thread(target=server.run, daemon=True)
    serving.start()
    while not server.started:
        time.sleep(0.05)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    serving.join()


def _copy(source: Path, target: Path) -> None:
    """Copy a database, including its write-ahead log."""
    with (
        contextlib.closing(sqlite3.connect(source)) as read,
        contextlib.closing(sqlite3.connect(target)) as written,
    ):
        read.backup(written)


def _create_activity() -> None:
    """Create a user, and changes by several operators."""
    from django.contrib.auth import get_user_model

    from scripts import sample_servers
    from toolbelt.control import undo, writing
    from toolbelt.control.access import switches
    from toolbelt.control.agents import agents, session_changes
    from toolbelt.control.people import tokens
    from toolbelt.runtime import calls

    get_user_model().objects.create_superuser("olive", password=PASSWORD)
    olive, sam = writing.by("olive", via="screen"), writing.by("sam", via="api")
    agents.equip(sam.replace(confirm=True, reason="Works on files this month."), "data-analyst", "minimal")
    switches.flip(sam, "tech-writer", "notion_editing", False)
    switches.flip(olive.replace(confirm=True, reason="Release week."), "release-captain", "issues", True)
    switches.override(olive.replace(confirm=True), "release-captain", "github__merge_pull_request", False)
    change = switches.flip(olive, "explorer", "code_search", False)
    if change.entry is not None:
        undo.undo(olive, change.entry)
    switches.override(
        olive.replace(confirm=True, reason="Reviewed with the team."), "reviewer", "git__git_reset", None
    )
    switches.flip(olive, "runner", "local_git", False)
    switches.override(
        olive.replace(reason="Reads papers even without a request for research."), "assistant", "arxiv", True
    )
    calls.run("assistant", "load_tools", {"toolkit": "devops"}, session="nightly-deploy")
    calls.run("assistant", "load_tools", {"toolkit": "devops"}, session="release-notes")
    session_changes.equip(olive.replace(reason="Reads, for once."), "assistant", "release-notes", "research")
    tokens.issue(olive, agent="assistant", name="Chat on the intranet")
    tokens.issue(olive, user="olive", scope="read", name="Dashboards")
    revoked = tokens.issue(sam, agent="runner", name="The old build server")
    tokens.revoke(sam.replace(reason="It was shut down."), revoked.token.prefix)
    sample_servers.add_servers(olive)


def _log_in(browser: Browser, address: str) -> StorageState:
    context = browser.new_context(base_url=address)
    page = context.new_page()
    page.goto("/login/")
    page.get_by_label("User name").fill("olive")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("heading", name="Overview").wait_for()
    state = context.storage_state()
    context.close()
    return state


def _make_small(picture: Path) -> None:
    """Reduce the colors with pngquant, if it is installed, which reduces the size to a third."""
    if pngquant := shutil.which("pngquant"):
        subprocess.run(
            [pngquant, "--force", "--strip", "--nofs", "--output", picture, COLORS, picture], check=True
        )


if __name__ == "__main__":
    main()
