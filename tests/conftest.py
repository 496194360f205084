"""Settings and fixtures for all tests: the browser, Hypothesis profiles, garbage collection, the database."""

import gc
import os
import shutil
from collections.abc import Iterator
from typing import Any
from unittest import mock

import hypothesis
import pytest
from asgiref.sync import SyncToAsync
from django import template
from django.db import connections
from django.dispatch import receiver
from django.test import TransactionTestCase, client
from django.test.signals import setting_changed
from pytest_django import DjangoDbBlocker

from tests import fast_fixtures
from toolbelt.runtime import counting, plugins

# No deadline, because tests may run on a loaded machine. `make soak` runs more examples.
hypothesis.settings.register_profile("quick", deadline=None, max_examples=30)
hypothesis.settings.register_profile("long", deadline=None, max_examples=1_000)
hypothesis.settings.load_profile("quick")

CHROMIUM = os.environ.get("CHROMIUM") or next(
    filter(
        None,
        map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")),
    ),
    None,
)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Disable garbage collection during test collection, and exclude the objects that it creates from later runs.

    They are not garbage, and searching them takes a fifth of the time. Later runs are rare, because tests leave little
    garbage and keep much in use.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(50_000, 20, 20)
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run slow tests first, so that at the end no process is still busy with one while the others are idle."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium: apt-get install chromium-headless-shell")
    # Playwright runs an event loop in the thread of the tests, in which they use the database.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    return {
        **browser_type_launch_args,
        "executable_path": CHROMIUM,
        "args": [
            "--no-sandbox",  # Chromium does not start as root with a sandbox
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ],
    }


@receiver(setting_changed)
def stop_plugins_of_the_previous_file(*, setting: str, **_: Any) -> None:
    """Stop plugins loaded from another file, including when the settings of a test are restored."""
    if setting == "TOOLBELT_PLUGINS_FILE":
        plugins.stop()


@pytest.fixture(autouse=True)
def close_connections_of_sync_to_async() -> Iterator[None]:
    """Close connections in the thread of sync_to_async, where a test with its own event loop leaves them open.

    An open connection prevents the removal of a PostgreSQL database, and keeps the log of a SQLite file in use.
    """
    yield
    executor = SyncToAsync.single_thread_executor
    if executor._threads:
        executor.submit(connections.close_all).result()


@pytest.fixture(autouse=True)
def forget_repetitions() -> None:
    """Forget the identical calls that earlier tests of this process made."""
    counting.repetitions.clear()


@pytest.fixture(scope="session", autouse=True)
def keep_only_outermost_contexts() -> Iterator[None]:
    """Record only the template context of a page, not those of the templates that it includes.

    Django copies each of them, which takes as long as rendering some pages.
    """
    keep_all = client.store_rendered_templates  # type: ignore[attr-defined]

    def keep_outermost(store: dict[str, Any], *arguments: Any, **named: Any) -> None:
        if "context" not in store and isinstance(named["context"], template.RequestContext):
            keep_all(store, *arguments, **named)

    with mock.patch.object(client, "store_rendered_templates", keep_outermost):
        yield


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Replace Django's flush after a test that commits by a faster one."""
    with django_db_blocker.unblock():
        empty = fast_fixtures.emptying()
    with mock.patch.object(TransactionTestCase, "_fixture_teardown", empty):
        yield
