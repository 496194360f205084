"""What do tests in a browser share? A server with the demo, fresh for each test, and operators who look at it.

The demo takes seconds to load, so it is loaded once, into a file of its own; each test works on a copy of that file.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth import models as auth
from django.core.management import call_command
from django.db import connection, connections
from django.test import Client
from playwright.sync_api import BrowserContext, Page, expect
from pytest_django import live_server_helper

from tests.browser import watching
from toolbelt.control import queries

PASSWORD = "correct horse battery"
# What the operators who work with agents may do.
MAY = (
    "change_agent",
    "add_agent",
    "delete_agent",
    "delete_agentsession",
    "view_apitoken",
    "add_apitoken",
    "change_apitoken",
    "view_plugin",
    "add_plugin",
    "change_plugin",
    "change_tool",
    "change_toolkit",
    "add_toolkit",
    "delete_toolkit",
    "add_loadout",
    "change_loadout",
    "delete_loadout",
    "add_subapp",
    "change_subapp",
    "delete_subapp",
    "view_callrecord",
)

OpensPage = Callable[..., Page]

# For machines that have other things to do.
PATIENCE = 20_000
expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="session")
def demo_file(
    django_test_environment: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Make a database with the demo and its people; give the file."""
    if connection.vendor != "sqlite":
        pytest.skip("each test in a browser works on a copy of a file: they run on SQLite")
    file = tmp_path_factory.mktemp("demo") / "demo.sqlite3"
    with use(file, django_db_blocker):
        call_command("migrate", verbosity=0)
        call_command("loaddata", "demo", verbosity=0)
        make = get_user_model().objects.create_user
        may = auth.Permission.objects.filter(codename__in=MAY)
        for name in ("olive", "otto"):
            make(name, password=PASSWORD).user_permissions.set(may)
        make("rosa", password=PASSWORD)
    return file


@pytest.fixture(scope="session")
def server(demo_file: Path) -> Iterator[str]:
    """Serve; give the address."""
    running = live_server_helper.LiveServer("localhost")
    yield str(running.url)
    running.stop()


@pytest.fixture
def demo(
    server: str, demo_file: Path, django_db_blocker: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """Give one test a demo of its own; give the address that serves it.

    Its pages hear of nothing that others do: what is on them when, the test decides (`test_live` is about the others).
    """
    monkeypatch.setattr(queries, "revision", lambda agent="": 0)
    file = shutil.copyfile(demo_file, tmp_path / "demo.sqlite3")
    with use(file, django_db_blocker):
        yield server


@pytest.fixture
def open_page(demo: str, new_context: Callable[..., BrowserContext]) -> Iterator[OpensPage]:
    """Give a way to open a browser of one's own: who looks, at what, through which window.

    Whatever the browser complains of in its console fails the test; what belongs to the test it says with ``expects``.
    """
    watches: list[watching.Watch] = []

    def open_(
        address: str = "/",
        *,
        who: str | None = "olive",
        width: int | None = None,
        theme: str | None = None,
        expects: str = "",
        **options: Any,
    ) -> Page:
        # What is tried without scripts, is tried on a phone in the dark: so each flow is seen in both looks.
        is_plain = options.get("java_script_enabled") is False
        width = width or (390 if is_plain else 1440)
        theme = theme or ("dark" if is_plain else "light")
        phone = width < 600
        at = options.pop("base_url", demo)
        context = new_context(
            base_url=at,
            viewport={"width": width, "height": 844 if phone else 1000},
            color_scheme=theme,
            is_mobile=phone,
            has_touch=phone,
            **options,
        )
        context.set_default_timeout(PATIENCE)
        if who is not None:
            context.add_cookies([{"name": "sessionid", "value": _session(who), "url": at}])
        page = context.new_page()
        watches.append(watching.Watch(page, expects))
        page.goto(address)
        return page

    yield open_
    assert [complaint for watch in watches for complaint in watch.complaints] == []


@pytest.fixture
def access(open_page: OpensPage) -> Page:
    """Give an operator's browser at the Access page of the assistant."""
    return open_page("/agents/assistant/")


def _session(who: str) -> str:
    browser = Client()
    browser.force_login(get_user_model().objects.get(username=who))
    connections.close_all()
    return browser.cookies["sessionid"].value


@contextmanager
def use(file: Path, django_db_blocker: Any) -> Iterator[None]:
    """Let this process use another database: every thread reads its name from the same place."""
    before = connection.settings_dict["NAME"]
    connections.close_all()
    connection.settings_dict["NAME"] = str(file)
    with django_db_blocker.unblock():
        try:
            yield
        finally:
            connections.close_all()
            connection.settings_dict["NAME"] = before
