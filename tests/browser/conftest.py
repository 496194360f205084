"""Fixtures of the browser tests: a server with a new copy of the demo for each test, and logged-in operators.

The demo takes seconds to load, so it is loaded once, with its operators logged in, into a file of its own; each test
works on a copy of that file.
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

from tests.browser import looks, watching, windows
from toolbelt.control.reports import queries

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
_FAILED = pytest.StashKey[bool]()
# The cookie of each operator, who is logged in already.
_sessions: dict[str, str] = {}

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
        for name in ("olive", "otto", "rosa"):
            _sessions[name] = _log_in(name)
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
    """Yield one test a demo of its own; give the address that serves it.

    Its pages hear of nothing that others do: what is on them when, the test decides (`test_live` is about the others).
    """
    monkeypatch.setattr(queries, "revision", lambda agent="": 0)
    file = shutil.copyfile(demo_file, tmp_path / "demo.sqlite3")
    with use(file, django_db_blocker):
        yield server


@pytest.fixture
def trusted_olive(demo: str) -> None:
    """Make olive staff who manages users, because some pages are for them only."""
    user = get_user_model().objects.get(username="olive")
    user.is_staff = True
    user.save()
    names = ("view_user", "add_user", "change_user")
    user.user_permissions.add(*auth.Permission.objects.filter(codename__in=names))


@pytest.fixture
def look() -> looks.Look:
    """Return how this test looks at the pages; `looks` has marks that vary it."""
    return looks.DESK


@pytest.fixture(scope="session")
def kept_windows(browser: Browser) -> windows.Windows:
    """Return the windows that tests take turns with."""
    return windows.Windows(browser)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let fixtures know whether the test failed."""
    report = yield
    if report.when == "call":
        item.stash[_FAILED] = report.failed
    return report


@pytest.fixture
def open_page(
    demo: str, look: looks.Look, kept_windows: windows.Windows, request: pytest.FixtureRequest
) -> Iterator[OpensPage]:
    """Yield a way to open a browser of one's own: who looks, at what, and how, if not as the test does.

    Whatever the browser complains of in its console fails the test; what belongs to the test it says with ``expects``.
    So does a page that ends up wider than its window, or with controls that are too small for it.
    """
    opened: list[tuple[Page, watching.Watch]] = []

    def open_(
        address: str = "/",
        *,
        who: str | None = "olive",
        width: int = look.width,
        theme: str = look.theme,
        scripts: bool = look.scripts,
        at: str = demo,
        expects: str = "",
        permissions: Sequence[str] = (),
        **options: Any,
    ) -> Page:
        phone = width < looks.PHONE
        page = kept_windows.lend(
            at,
            viewport={"width": width, "height": 844 if phone else 1000},
            color_scheme=theme,
            is_mobile=phone,
            has_touch=phone,
            java_script_enabled=scripts,
            **options,
        )
        page.set_default_timeout(PATIENCE)
        page.context.grant_permissions(permissions)
        if who is not None:
            page.context.add_cookies([{"name": "sessionid", "value": _sessions[who], "url": at}])
        opened.append((page, watching.Watch(page, expects)))
        page.goto(address)
        return page

    yield open_
    passed = not request.node.stash.get(_FAILED, True)
    wrong = [one for page, watch in opened for one in _wrong(page, watch)] if passed else []
    for _, watch in opened:
        watch.end()
    kept_windows.take_back(clean=passed)
    assert wrong == []


def _wrong(page: Page, watch: watching.Watch) -> list[str]:
    if page.is_closed():
        return watch.complaints
    page.wait_for_load_state()
    return [*watch.complaints, *looks.complaints(page)]


@pytest.fixture
def access(open_page: OpensPage) -> Page:
    """Return an operator's browser at the Access page of the assistant."""
    return open_page("/agents/assistant/")


def _log_in(name: str) -> str:
    browser = Client()
    browser.force_login(get_user_model().objects.get(username=name))
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
