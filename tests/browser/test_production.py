"""Tests that a server with production settings serves the files that pages need."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from playwright.sync_api import Page, expect

from tests.browser import console, dashboard, serving
from tests.browser.conftest import PASSWORD

pytestmark = [pytest.mark.browser, pytest.mark.slow]

# The project's settings, with the collected files and the password hasher of this test.
SETTINGS = """
from toolbelt.settings import *

STATIC_ROOT = {static!r}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
"""


@pytest.fixture
def production(demo_database: Path, tmp_path: Path) -> Iterator[str]:
    """Run the server with collected files whose names contain hashes; yield its address."""
    (tmp_path / "production_settings.py").write_text(SETTINGS.format(static=str(tmp_path / "collected")))
    file = shutil.copyfile(demo_database, tmp_path / "production.sqlite3")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        **os.environ,
        "TOOLBELT_ENV": "production",
        "TOOLBELT_INSECURE_HTTP": "true",
        "TOOLBELT_LOG_LEVEL": "WARNING",
        # No process runs the demo's tools here.
        "TOOLBELT_RUNNING_SECONDS": "0",
        "SECRET_KEY": secrets.token_urlsafe(50),
        "ALLOWED_HOSTS": "127.0.0.1",
        "DATABASE_URL": f"sqlite:///{file}",
        "DJANGO_SETTINGS_MODULE": "production_settings",
        "PYTHONPATH": os.pathsep.join([str(tmp_path), str(settings.BASE_DIR)]),
    }
    options: dict[str, Any] = {"env": environment, "cwd": settings.BASE_DIR}
    subprocess.run([sys.executable, "manage.py", "collectstatic", "--no-input", "-v0"], check=True, **options)
    asgi = [sys.executable, "-m", "uvicorn", "toolbelt.asgi:application", "--lifespan", "on"]
    process = subprocess.Popen([*asgi, "--port", str(port), "--log-level", "warning"], **options)
    address = f"http://127.0.0.1:{port}"
    try:
        _wait_for(f"{address}/healthz", process)
        yield address
    finally:
        process.terminate()
        process.wait(serving.SECONDS_TO_END)


def test_a_flip_works_in_place_with_collected_and_hashed_files(production: str, page: Page) -> None:
    log = console.ConsoleLog(page, "")
    missing: list[str] = []
    page.on("response", lambda response: missing.append(response.url) if response.status >= 400 else None)
    page.goto(f"{production}/agents/runner/")
    page.get_by_label("User name").fill("olive")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    # The login leads on to the requested page, which has to be loaded first.
    expect(dashboard.switch(page, "local_git")).to_be_visible()
    page.wait_for_load_state("load")
    assert page.evaluate("typeof htmx") == "object"
    files = page.evaluate(
        "[...document.querySelectorAll('script, link[rel=stylesheet]')].map((e) => e.src || e.href)"
    )
    assert all(re.search(r"\.[0-9a-f]{12}\.(js|css)$", name) for name in files)
    linked = {re.sub(r"\.[0-9a-f]{12}\.", ".", name.rpartition("/")[2]) for name in files}
    there = {file.name for kind in ("css", "js") for file in (settings.BASE_DIR / "static" / kind).iterdir()}
    # Only the pages of passkeys have their script.
    assert there - linked == {"passkeys.js"}
    # The flip does not load the page again.
    page.evaluate("document.body.dataset.isSame = 'yes'")
    dashboard.switch(page, "local_git").click()
    expect(dashboard.switch(page, "local_git")).to_have_attribute("aria-checked", "false")
    expect(page.locator("#agent-facts")).to_contain_text("40 of 529 tools")
    assert page.evaluate("document.body.dataset.isSame") == "yes"
    assert (log.messages, missing) == ([], [])


def _wait_for(address: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(200):
        assert process.poll() is None, "the server ended early"
        try:
            urllib.request.urlopen(address).close()  # noqa: S310 (our own address)
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
        else:
            return
    raise AssertionError("the server did not start")
