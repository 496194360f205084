"""Settings and fixtures of all tests: the browser, Hypothesis profiles, garbage collection, the database."""

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
from toolbelt.runtime import plugins

# No deadline: a loaded machine is no fault of the code. `make soak` looks for examples at length.
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
    """Look for garbage neither while the tests are collected nor, afterwards, among what that left: there is none, and
    the search takes a fifth of the time. Look for other garbage seldom: tests leave little, and have much in use.
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
    """Run first what takes seconds: at the end, one process would be busy with it, and the others have nothing left."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium: apt-get install chromium-headless-shell")
    # Playwright keeps an event loop running in the thread of the tests, and they use the database there.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    return {
        **browser_type_launch_args,
        "executable_path": CHROMIUM,
        "args": [
            "--no-sandbox",  # Chromium refuses to start as root with one
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ],
    }


@receiver(setting_changed)
def load_the_plugins_anew(*, setting: str, **_: Any) -> None:
    """Shut down the plugins that were loaded from another file: also when a test ends and its settings are undone."""
    if setting == "TOOLBELT_PLUGINS_FILE":
        plugins.stop()


@pytest.fixture(autouse=True)
def closed_beside_the_loop() -> Iterator[None]:
    """Close the connection in the thread of sync_to_async, where a test leaves it that runs an event loop of its own.

    One that stays open keeps a PostgreSQL database from being removed, and the log of a SQLite file in use.
    """
    yield
    executor = SyncToAsync.single_thread_executor
    if executor._threads:
        executor.submit(connections.close_all).result()


@pytest.fixture(scope="session", autouse=True)
def outermost_contexts_only() -> Iterator[None]:
    """Keep only the context of a page for its test, not that of code that it shows: Django copies that of each part,
    too, which takes as long as some pages do.
    """
    keep_all = client.store_rendered_templates  # type: ignore[attr-defined]

    def keep_outermost(store: dict[str, Any], *arguments: Any, **named: Any) -> None:
        if "context" not in store and isinstance(named["context"], template.RequestContext):
            keep_all(store, *arguments, **named)

    with mock.patch.object(client, "store_rendered_templates", keep_outermost):
        yield


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Let the database be emptied quickly after each test that commits."""
    with django_db_blocker.unblock():
        empty = fast_fixtures.emptying()
    with mock.patch.object(TransactionTestCase, "_fixture_teardown", empty):
        yield
