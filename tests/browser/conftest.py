"""Fixtures of the browser tests: a server with a new copy of the demo for each test, and logged-in operators.

The demo takes seconds to load, so it is loaded once, with its operators logged in, into a file; each test works on a
copy of that file.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth import models as auth
from django.core.management import call_command
from django.db import connection, connections
from django.test import Client
from playwright.sync_api import Browser, Page, expect
from pytest_django import live_server_helper

from tests.browser import console, devices, page_pool
from toolbelt.control.reports import queries

PASSWORD = "correct horse battery"
OPERATOR_PERMISSIONS = (
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
    "view_gaterule",
    "add_gaterule",
    "change_gaterule",
    "delete_gaterule",
    "view_callrecord",
    "add_clientconnection",
    "view_clientconnection",
    "view_approval",
    "decide_approval",
)

OpensPage = Callable[..., Page]
_FAILED = pytest.StashKey[bool]()
# The session cookie of each operator.
_sessions: dict[str, str] = {}

# Generous, for machines that are busy with other things.
TIMEOUT_MS = 20_000
expect.set_options(timeout=TIMEOUT_MS)


@pytest.fixture(scope="session")
def demo_database(
    django_test_environment: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return the file of a database with the demo and its operators."""
    if connection.vendor != "sqlite":
        pytest.skip("each browser test works on a copy of a file: they run on SQLite")
    file = tmp_path_factory.mktemp("demo") / "demo.sqlite3"
    with use_database(file, django_db_blocker):
        call_command("migrate", verbosity=0)
        call_command("loaddata", "demo", verbosity=0)
        create_user = get_user_model().objects.create_user
        permissions = auth.Permission.objects.filter(codename__in=OPERATOR_PERMISSIONS)
        for name in ("olive", "otto"):
            create_user(name, password=PASSWORD).user_permissions.set(permissions)
        # A viewer.
        create_user("rosa", password=PASSWORD)
        for name in ("olive", "otto", "rosa"):
            _sessions[name] = _log_in(name)
    return file


@pytest.fixture(scope="session")
def server(demo_database: Path) -> Iterator[str]:
    """Run the server; yield its address."""
    live_server = live_server_helper.LiveServer("localhost")
    yield str(live_server.url)
    live_server.stop()


@pytest.fixture
def demo(
    server: str, demo_database: Path, django_db_blocker: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """Yield the address of the server, which serves a new copy of the demo.

    Open pages are not told of changes, so that the test alone decides when a page changes (`test_live` is about that).
    """
    monkeypatch.setattr(queries, "revision", lambda agent="": 0)
    file = shutil.copyfile(demo_database, tmp_path / "demo.sqlite3")
    with use_database(file, django_db_blocker):
        yield server


@pytest.fixture
def olive_is_staff(demo: str) -> None:
    """Make olive staff who manages users and alerts, because some pages are for them only."""
    user = get_user_model().objects.get(username="olive")
    user.is_staff = True
    user.save()
    names = ("view_user", "add_user", "change_user", "view_alert", "test_alert")
    user.user_permissions.add(*auth.Permission.objects.filter(codename__in=names))


@pytest.fixture
def browser_device() -> devices.Device:
    """Return the device of this test; the marks in `devices` choose another one."""
    return devices.DESKTOP


@pytest.fixture(scope="session")
def pages(browser: Browser) -> page_pool.PagePool:
    """Return the pool of pages that tests reuse."""
    return page_pool.PagePool(browser)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Store whether the test failed, for fixtures."""
    report = yield
    if report.when == "call":
        item.stash[_FAILED] = report.failed
    return report


@pytest.fixture
def open_page(
    demo: str, browser_device: devices.Device, pages: page_pool.PagePool, request: pytest.FixtureRequest
) -> Iterator[OpensPage]:
    """Yield a function that opens a path in a browser of its own, as ``user``, on the device of the test.

    The test fails if the browser reports an error that does not match ``expected_errors``, or if a page ends up wider
    than its window or with controls that are too small for it.
    """
    opened: list[tuple[Page, console.ConsoleLog]] = []

    def open_(
        path: str = "/",
        *,
        user: str | None = "olive",
        width: int = browser_device.width,
        theme: str = browser_device.theme,
        base_url: str = demo,
        expected_errors: str = "",
        permissions: Sequence[str] = (),
        **options: Any,
    ) -> Page:
        is_phone = width < devices.PHONE_MAX_WIDTH
        page = pages.lend(
            base_url,
            viewport={"width": width, "height": 844 if is_phone else 1000},
            color_scheme=theme,
            is_mobile=is_phone,
            has_touch=is_phone,
            java_script_enabled=browser_device.scripts,
            **options,
        )
        page.set_default_timeout(TIMEOUT_MS)
        page.context.grant_permissions(permissions)
        if user is not None:
            page.context.add_cookies([{"name": "sessionid", "value": _sessions[user], "url": base_url}])
        opened.append((page, console.ConsoleLog(page, expected_errors)))
        page.goto(path)
        return page

    yield open_
    passed = not request.node.stash.get(_FAILED, True)
    problems = [problem for page, log in opened for problem in _problems(page, log)] if passed else []
    for _, log in opened:
        log.stop()
    pages.take_back(reusable=passed)
    assert problems == []


def _problems(page: Page, log: console.ConsoleLog) -> list[str]:
    if page.is_closed():
        return log.messages
    page.wait_for_load_state()
    return [*log.messages, *devices.layout_problems(page)]


@pytest.fixture
def access(open_page: OpensPage) -> Page:
    """Return olive's browser at the Access page of the assistant."""
    return open_page("/agents/assistant/")


def _log_in(name: str) -> str:
    client = Client()
    client.force_login(get_user_model().objects.get(username=name))
    return client.cookies["sessionid"].value


@contextmanager
def use_database(file: Path, django_db_blocker: Any) -> Iterator[None]:
    """Let all threads of this process use another database."""
    before = connection.settings_dict["NAME"]
    connections.close_all()
    connection.settings_dict["NAME"] = str(file)
    with django_db_blocker.unblock():
        try:
            yield
        finally:
            connections.close_all()
            connection.settings_dict["NAME"] = before
